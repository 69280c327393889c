#include "lockstep/data/batch_sampler.h"

#include <c10/util/StringUtil.h>

#include "lockstep/base/error.h"

namespace lockstep::data {

BatchSampler::~BatchSampler() = default;

std::optional<std::int64_t> BatchSampler::skip() {
  const auto batch = next();
  return batch ? std::optional(batch->size()) : std::nullopt;
}

void BatchSampler::end_pass() {
  if (const auto below = wrapped()) below->end_pass();
}

void BatchSampler::set_epoch(std::int64_t epoch) {
  if (const auto below = wrapped()) below->set_epoch(epoch);
  if (const auto indices = sampler()) indices->set_epoch(epoch);
}

bool BatchSampler::is_rank_sharded() const {
  const auto below = wrapped();
  const auto indices = sampler();
  return (below && below->is_rank_sharded()) || (indices && indices->is_rank_sharded());
}

SamplerBatches::SamplerBatches(std::shared_ptr<Sampler> sampler, std::int64_t batch_size, bool drop_last)
    : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {
  if (!sampler_) {
    throw InvalidArgument({.where = "SamplerBatches", .expected = "a sampler", .got = "an empty pointer"});
  }
  if (batch_size_ < 1) {
    throw InvalidArgument({.where = "SamplerBatches",
                           .expected = "batch_size to be positive",
                           .got = c10::str(batch_size_),
                           .fix = "Give at least 1; a loader without batches has batch_size = std::nullopt."});
  }
}

std::optional<Batch> SamplerBatches::next() {
  Batch batch;
  batch.indices.reserve(static_cast<std::size_t>(batch_size_));
  sampler_->take(batch_size_, batch.indices);
  return is_batch(batch.size()) ? std::optional(std::move(batch)) : std::nullopt;
}

std::optional<std::int64_t> SamplerBatches::skip() {
  const auto size = sampler_->skip(batch_size_);
  return is_batch(size) ? std::optional(size) : std::nullopt;
}

// Fewer indices than a batch has are the last of a pass.
bool SamplerBatches::is_batch(std::int64_t num_indices) const {
  return num_indices == batch_size_ || (num_indices > 0 && !drop_last_);
}

std::int64_t SamplerBatches::length() const {
  const auto indices = sampler_->length();
  return drop_last_ ? indices / batch_size_ : (indices + batch_size_ - 1) / batch_size_;
}

std::shared_ptr<BatchSampler> SamplerBatches::with_sampler(std::shared_ptr<Sampler> other) const {
  return std::make_shared<SamplerBatches>(std::move(other), batch_size_, drop_last_);
}

}  // namespace lockstep::data
