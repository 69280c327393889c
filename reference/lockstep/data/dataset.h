#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/export.h"
#include "lockstep/value/value.h"

namespace lockstep::data {

/// A map-style dataset: `size` items, each got by its index.
///
/// Users need not derive from this: a loader takes anything that has `size()` and `get(index)` (make_dataset). With
/// several workers `get` is called by several threads at once.
class LOCKSTEP_API Dataset {
 public:
  virtual ~Dataset();

  /// @param index  0 ... size()-1, or whatever else the sampler hands out
  virtual Value get(std::int64_t index) = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Told the epoch at the start of a pass, if no sampler inside a shard follows epochs (DATA-102).
  virtual void set_epoch(std::int64_t /*epoch*/) {}
};

/// A dataset's `get` failed. The message and `kind()` are those of the exception it threw, which is nested within
/// (std::rethrow_if_nested); the index is in front.
class LOCKSTEP_API DatasetError : public Error {
 public:
  DatasetError(std::int64_t index, const std::exception& cause);
  ~DatasetError() override;

  [[nodiscard]] std::int64_t index() const noexcept { return index_; }

 private:
  std::int64_t index_;
};

/// `dataset.get(index)`. @throws DatasetError  with the original nested, whatever `get` throws
LOCKSTEP_API Value get_item(Dataset& dataset, std::int64_t index);

/// What a sample may be: a Value or what converts to one (at::Tensor, a number, a string), or a torch::data::Example,
/// which becomes the tuple (data, target), or its data alone if it has no target.
template <typename Sample>
Value to_value(Sample&& sample) {
  if constexpr (std::convertible_to<Sample, Value>) {
    return std::forward<Sample>(sample);
  } else if constexpr (requires {
                         sample.data;
                         sample.target;
                       }) {
    return Value::tuple({to_value(std::move(sample.data)), to_value(std::move(sample.target))});
  } else if constexpr (requires { sample.data; }) {
    return to_value(std::move(sample.data));
  } else {
    static_assert(!sizeof(Sample), "get(index) must return a Value, an at::Tensor or a torch::data::Example");
  }
}

/// Has `size()` and `get(index)`; torch::data's own datasets do.
template <typename T>
concept MapStyle = requires(T& source) {
  source.get(std::size_t{0});
  source.size();
};

/// Any map-style dataset seen as a Dataset. `set_epoch(epoch)` is passed on if the dataset has it.
template <MapStyle Source>
class MapDataset final : public Dataset {
 public:
  explicit MapDataset(std::shared_ptr<Source> source) : source_(std::move(source)) {}

  Value get(std::int64_t index) override { return to_value(source_->get(static_cast<std::size_t>(index))); }
  [[nodiscard]] std::int64_t size() const override { return to_size(source_->size()); }
  void set_epoch(std::int64_t epoch) override {
    if constexpr (requires { source_->set_epoch(epoch); }) source_->set_epoch(epoch);
  }

 private:
  template <typename Size>
  static std::int64_t to_size(const Size& size) {
    if constexpr (std::integral<Size>) {
      return static_cast<std::int64_t>(size);
    } else {  // std::optional, as torch::data has it
      if (size) return static_cast<std::int64_t>(*size);
      throw TypeError({.where = "Dataset",
                       .expected = "a dataset that knows its size",
                       .got = "an empty size()",
                       .fix = "Return the number of items from size()."});
    }
  }

  std::shared_ptr<Source> source_;
};

/// Makes a Dataset of one that is handed over, or shared so that its owner keeps sight of it.
///
///     struct Squares { std::size_t size() const { return 100; }
///                      at::Tensor get(std::size_t i) const { return at::tensor(double(i * i)); } };
///     auto dataset = make_dataset(Squares{});
template <MapStyle Source>
std::shared_ptr<Dataset> make_dataset(std::shared_ptr<Source> source) {
  if constexpr (std::derived_from<Source, Dataset>) {
    return source;
  } else {
    return std::make_shared<MapDataset<Source>>(std::move(source));
  }
}
template <typename Source>
requires MapStyle<std::remove_cvref_t<Source>> std::shared_ptr<Dataset> make_dataset(Source&& source) {
  return make_dataset(std::make_shared<std::remove_cvref_t<Source>>(std::forward<Source>(source)));
}

}  // namespace lockstep::data
