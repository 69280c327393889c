#include "lockstep/data/batch_sampler.h"

#include <c10/util/StringUtil.h>

#include "lockstep/base/error.h"

namespace lockstep::data {

BatchSampler::~BatchSampler() = default;

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
  while (batch.size() < batch_size_) {
    const auto index = sampler_->next();
    if (!index) break;
    batch.indices.push_back(*index);
  }
  const bool is_short = batch.size() < batch_size_;
  if (batch.indices.empty() || (is_short && drop_last_)) return std::nullopt;
  return batch;
}

std::int64_t SamplerBatches::length() const {
  const auto indices = sampler_->length();
  return drop_last_ ? indices / batch_size_ : (indices + batch_size_ - 1) / batch_size_;
}

std::shared_ptr<BatchSampler> SamplerBatches::with_sampler(std::shared_ptr<Sampler> other) const {
  return std::make_shared<SamplerBatches>(std::move(other), batch_size_, drop_last_);
}

}  // namespace lockstep::data
