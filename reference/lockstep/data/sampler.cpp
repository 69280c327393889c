#include "lockstep/data/sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>

#include <algorithm>
#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

constexpr std::int64_t kDrawnAtATime = 32;  // with replacement; PyTorch's number, on which the order depends

}  // namespace

Sampler::~Sampler() = default;

void Sampler::take(std::int64_t count, std::vector<std::int64_t>& indices) {
  for (; count > 0; --count) {
    const auto index = next();
    if (!index) return;
    indices.push_back(*index);
  }
}

std::int64_t Sampler::skip(std::int64_t count) {
  std::int64_t skipped = 0;
  while (skipped < count && next()) ++skipped;
  return skipped;
}

std::optional<std::int64_t> SequentialSampler::next() {
  return cursor_ < size_ ? std::optional(cursor_++) : std::nullopt;
}

void SequentialSampler::take(std::int64_t count, std::vector<std::int64_t>& indices) {
  const auto first = cursor_;
  const auto old_size = indices.size();
  indices.resize(old_size + static_cast<std::size_t>(skip(count)));
  std::iota(indices.begin() + static_cast<std::ptrdiff_t>(old_size), indices.end(), first);
}

std::int64_t SequentialSampler::skip(std::int64_t count) {
  const auto skipped = std::min(count, size_ - cursor_);
  cursor_ += skipped;
  return skipped;
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
  next_ = drawn_end_ = nullptr;
  left_ = size_ == 0 ? 0 : length();
  exhausted_ = size_ == 0;
  if (!exhausted_)
    drawing_ = options_.generator.defined() ? options_.generator : random::make_generator(random::draw_seed());
}

std::optional<std::int64_t> RandomSampler::next() { return has_drawn() ? std::optional(*next_++) : std::nullopt; }

void RandomSampler::take(std::int64_t count, std::vector<std::int64_t>& indices) {
  while (count > 0 && has_drawn()) {
    const auto taken = std::min<std::int64_t>(count, drawn_end_ - next_);
    indices.insert(indices.end(), next_, next_ + taken);
    next_ += taken;
    count -= taken;
  }
}

std::int64_t RandomSampler::skip(std::int64_t count) {
  std::int64_t skipped = 0;
  while (skipped < count && has_drawn()) {
    const auto taken = std::min<std::int64_t>(count - skipped, drawn_end_ - next_);
    next_ += taken;
    skipped += taken;
  }
  return skipped;
}

// Draws when what was drawn is used up. False at the end of the pass.
bool RandomSampler::has_drawn() {
  while (next_ == drawn_end_) {
    if (exhausted_) return false;
    draw_more();
  }
  return true;
}

// A draw that is not used up, even one of which nothing is used, is the last of a pass: as in PyTorch, so that the
// generator stands where it would stand there when the next pass begins.
void RandomSampler::draw_more() {
  const auto whole = options_.replacement ? kDrawnAtATime : size_;
  const auto used = std::min(whole, left_);
  drawn_ =
      options_.replacement ? at::randint(size_, {used}, drawing_, at::kLong) : at::randperm(size_, drawing_, at::kLong);
  next_ = drawn_.const_data_ptr<std::int64_t>();
  drawn_end_ = next_ + used;
  left_ -= used;
  exhausted_ = used < whole;
}

}  // namespace lockstep::data
