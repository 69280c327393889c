#include "lockstep/data/sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

constexpr std::int64_t kDrawnAtATime = 32;  // with replacement; PyTorch's number, on which the order depends

std::vector<std::int64_t> to_indices(const at::Tensor& drawn) {
  const auto* first = drawn.const_data_ptr<std::int64_t>();
  return {first, first + drawn.numel()};
}

}  // namespace

Sampler::~Sampler() = default;

std::optional<std::int64_t> SequentialSampler::next() {
  return cursor_ < size_ ? std::optional(cursor_++) : std::nullopt;
}

RandomSampler::RandomSampler(std::int64_t size, RandomSamplerOptions options)
    : size_(size), options_(std::move(options)) {
  if (options_.num_samples.value_or(1) < 1) {
    throw InvalidArgument({.where = "RandomSampler",
                           .expected = "num_samples to be positive",
                           .got = c10::str(*options_.num_samples),
                           .fix = "Leave num_samples unset to visit every item once."});
  }
}

void RandomSampler::reset() {
  drawn_.clear();
  cursor_ = 0;
  left_ = size_ == 0 ? 0 : length();
  exhausted_ = size_ == 0;
  if (!exhausted_)
    drawing_ = options_.generator.defined() ? options_.generator : random::make_generator(random::draw_seed());
}

std::optional<std::int64_t> RandomSampler::next() {
  while (cursor_ == drawn_.size()) {
    if (exhausted_) return std::nullopt;
    draw_more();
  }
  return drawn_[cursor_++];
}

// A draw that is not used up, even one of which nothing is used, is the last of a pass: as in PyTorch, so that the
// generator stands where it would stand there when the next pass begins.
void RandomSampler::draw_more() {
  const auto whole = options_.replacement ? kDrawnAtATime : size_;
  const auto used = std::min(whole, left_);
  drawn_ = to_indices(options_.replacement ? at::randint(size_, {used}, drawing_, at::kLong)
                                           : at::randperm(size_, drawing_, at::kLong));
  drawn_.resize(static_cast<std::size_t>(used));
  cursor_ = 0;
  left_ -= used;
  exhausted_ = used < whole;
}

}  // namespace lockstep::data
