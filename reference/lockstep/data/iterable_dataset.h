#pragma once

#include <ATen/core/Generator.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "lockstep/base/export.h"
#include "lockstep/data/dataset.h"
#include "lockstep/value/value.h"

namespace lockstep::data {

/// A dataset that is a stream: items come one after the other, by no index, and their number need not be known.
///
/// A pass is `reset()`, then `next()` until it is empty; one pass at a time. Users need not derive from this: a loader
/// takes anything that has `reset()` and `next()` (make_iterable_dataset).
class LOCKSTEP_API IterableDataset {
 public:
  virtual ~IterableDataset();

  /// Begins a pass.
  virtual void reset() = 0;
  /// The next item; empty at the end of the pass, and from then on until the next reset().
  virtual std::optional<Value> next() = 0;
  /// Items of a whole pass; unset if unknown.
  [[nodiscard]] virtual std::optional<std::int64_t> size() const { return std::nullopt; }

  /// Whether set_epoch means something here. One that does not, but has a generator, has that seeded with the epoch.
  [[nodiscard]] virtual bool follows_epochs() const { return false; }
  virtual void set_epoch(std::int64_t /*epoch*/) {}
  /// The generator that decides the order or the items, which ranks that share the stream synchronise (RNG-008);
  /// nullptr, or an undefined one, if there is none.
  virtual at::Generator* generator() { return nullptr; }
};

/// Has `reset()`, and `next()` that returns an optional item.
template <typename T>
concept Stream = requires(T& source) {
  source.reset();
  to_value(*source.next());
  static_cast<bool>(source.next());
};

/// Any stream seen as an IterableDataset. What else the source has is used: `size()`, an integer or an optional one;
/// `set_epoch(epoch)`; `generator()`, which returns a reference to an at::Generator.
template <Stream Source>
class StreamDataset final : public IterableDataset {
 public:
  explicit StreamDataset(std::shared_ptr<Source> source) : source_(std::move(source)) {}

  void reset() override { source_->reset(); }
  std::optional<Value> next() override {
    auto item = source_->next();
    return item ? std::optional<Value>(to_value(*std::move(item))) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> size() const override {
    if constexpr (requires { static_cast<std::int64_t>(source_->size()); }) {
      return static_cast<std::int64_t>(source_->size());
    } else if constexpr (requires { static_cast<std::int64_t>(*source_->size()); }) {
      const auto known = source_->size();
      return known ? std::optional(static_cast<std::int64_t>(*known)) : std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  [[nodiscard]] bool follows_epochs() const override {
    return requires { source_->set_epoch(std::int64_t{}); };
  }
  void set_epoch(std::int64_t epoch) override {
    if constexpr (requires { source_->set_epoch(epoch); }) source_->set_epoch(epoch);
  }
  at::Generator* generator() override {
    if constexpr (requires(at::Generator * slot) { slot = &source_->generator(); }) {
      return &source_->generator();
    } else {
      return nullptr;
    }
  }

 private:
  std::shared_ptr<Source> source_;
};

/// Makes an IterableDataset of a stream that is handed over, or shared so that its owner keeps sight of it.
///
///     struct Lines { std::ifstream file; void reset() { file.seekg(0); }
///                    std::optional<std::string> next(); };
///     auto dataset = make_iterable_dataset(Lines{...});
template <typename Source>
requires std::derived_from<Source, IterableDataset> || Stream<Source> std::shared_ptr<IterableDataset>
make_iterable_dataset(std::shared_ptr<Source> source) {
  if constexpr (std::derived_from<Source, IterableDataset>) {
    return source;
  } else {
    return std::make_shared<StreamDataset<Source>>(std::move(source));
  }
}
template <typename Source>
requires Stream<std::remove_cvref_t<Source>> std::shared_ptr<IterableDataset> make_iterable_dataset(Source&& source) {
  return make_iterable_dataset(std::make_shared<std::remove_cvref_t<Source>>(std::forward<Source>(source)));
}

}  // namespace lockstep::data
