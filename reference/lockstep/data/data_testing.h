#pragma once

#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/data/iterable_dataset.h"
#include "lockstep/value/value.h"

// What the tests of this folder share: the smallest dataset, samplers that are lists, and ways to drain a pass.
namespace lockstep::data::test {

using Indices = std::vector<std::int64_t>;
using Batches = std::vector<Indices>;

inline at::Tensor id(std::size_t i) { return at::scalar_tensor(static_cast<std::int64_t>(i), at::kLong); }

/// Item i is the number i, as a 0-dim int64 tensor.
struct Ids {
  std::size_t count;
  [[nodiscard]] std::size_t size() const { return count; }
  [[nodiscard]] at::Tensor get(std::size_t i) const { return id(i); }
};

/// The numbers 0 ... count-1 as a stream, of known length if `sized`. Counts what is read.
class Count final : public IterableDataset {
 public:
  explicit Count(std::int64_t count, bool sized = false) : count_(count), sized_(sized) {}
  void reset() override { next_ = 0; }
  std::optional<Value> next() override {
    if (next_ == count_) return std::nullopt;
    ++num_reads;
    return id(static_cast<std::size_t>(next_++));
  }
  [[nodiscard]] std::optional<std::int64_t> size() const override {
    return sized_ ? std::optional(count_) : std::nullopt;
  }

  std::int64_t num_reads = 0;

 private:
  std::int64_t count_;
  bool sized_;
  std::int64_t next_ = 0;
};

/// Hands out a list of indices, the same in every pass.
class ListSampler : public Sampler {
 public:
  explicit ListSampler(Indices indices) : indices_(std::move(indices)) {}
  void reset() override { next_ = 0; }
  std::optional<std::int64_t> next() override {
    return next_ < indices_.size() ? std::optional(indices_[next_++]) : std::nullopt;
  }
  [[nodiscard]] std::int64_t length() const override { return static_cast<std::int64_t>(indices_.size()); }

 private:
  Indices indices_;
  std::size_t next_ = 0;
};

/// A batch sampler that is a list of batches, with or without a batch size, as a user writes it.
class ListBatches : public BatchSampler {
 public:
  explicit ListBatches(Batches batches, std::optional<std::int64_t> batch_size = std::nullopt, bool drop_last = false)
      : batches_(std::move(batches)), batch_size_(batch_size), drop_last_(drop_last) {}
  void reset() override { next_ = 0; }
  std::optional<Batch> next() override {
    return next_ < batches_.size() ? std::optional(Batch{.indices = batches_[next_++]}) : std::nullopt;
  }
  [[nodiscard]] std::int64_t length() const override { return static_cast<std::int64_t>(batches_.size()); }
  [[nodiscard]] std::optional<std::int64_t> batch_size() const override { return batch_size_; }
  [[nodiscard]] bool drop_last() const override { return drop_last_; }
  [[nodiscard]] const Batches& batches() const { return batches_; }

 private:
  Batches batches_;
  std::optional<std::int64_t> batch_size_;
  bool drop_last_;
  std::size_t next_ = 0;
};

/// One pass over a sampler.
inline Indices drain(Sampler& sampler) {
  Indices indices;
  sampler.reset();
  while (const auto index = sampler.next()) indices.push_back(*index);
  return indices;
}

/// One pass over a stream of numbers.
inline Indices drain(IterableDataset& dataset) {
  Indices items;
  dataset.reset();
  while (const auto item = dataset.next()) items.push_back(item->tensor().item<std::int64_t>());
  return items;
}

/// One pass over a batch sampler: its batches' indices.
inline Batches drain(BatchSampler& sampler) {
  Batches batches;
  sampler.reset();
  while (auto batch = sampler.next()) batches.push_back(std::move(batch->indices));
  return batches;
}

inline Indices to_indices(const Value& batch) {
  const auto flat = batch.tensor().flatten().to(at::kCPU);
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

/// One pass over a loader whose batches are tensors of Ids.
template <typename Loader>
Batches drain_loader(Loader& loader) {
  Batches batches;
  for (const auto& batch : loader) batches.push_back(to_indices(batch));
  return batches;
}

/// The first `count` batches of a pass that is then left.
template <typename Loader>
Batches head(Loader& loader, std::int64_t count) {
  Batches batches;
  if (count == 0) return batches;
  for (const auto& batch : loader) {
    batches.push_back(to_indices(batch));
    if (static_cast<std::int64_t>(batches.size()) == count) break;
  }
  return batches;
}

/// The message of the error that `fn` throws; a failure if it throws none of that type.
template <typename Expected>
std::string message_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Expected& error) {
    return error.what();
  }
  ADD_FAILURE() << "not thrown";
  return "";
}

}  // namespace lockstep::data::test
