#include "lockstep/data/distributed_sampler.h"
#include "lockstep/random/generator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>

namespace lockstep::data {

DistributedSampler::DistributedSampler(std::int64_t size, World world, DistributedSamplerOptions options)
    : size_(size), world_(checked(world, "DistributedSampler")), options_(options) {
  num_samples_ = options_.drop_last ? size_ / world_.size : (size_ + world_.size - 1) / world_.size;
  taken_ = num_samples_;
}

void DistributedSampler::reset() {
  taken_ = 0;
  if (!options_.shuffle) return;
  const auto permutation = at::randperm(size_, random::make_generator(options_.seed + epoch_), at::kLong);
  const auto* first = permutation.const_data_ptr<std::int64_t>();
  order_.assign(first, first + size_);
}

std::optional<std::int64_t> DistributedSampler::next() {
  if (taken_ == num_samples_) return std::nullopt;
  const auto place = (taken_++ * world_.size + world_.rank) % size_;  // beyond the end: the head again
  return options_.shuffle ? order_[static_cast<std::size_t>(place)] : place;
}

bool DistributedSampler::set_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  return true;
}

}  // namespace lockstep::data
