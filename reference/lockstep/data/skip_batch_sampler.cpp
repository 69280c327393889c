#include "lockstep/data/skip_batch_sampler.h"

#include <c10/util/StringUtil.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::data {

std::int64_t Skip::left_of(std::int64_t total) const {
  if (num_batches <= total) return total - num_batches;
  throw InvalidArgument({.where = "length after skip_first_batches",
                         .expected = c10::str("at most ", total, " batches to be skipped"),
                         .got = c10::str(num_batches),
                         .fix = "A pass over this loader is empty."});
}

Skip Skip::then(const Skip& next) const {
  const auto both = [](std::int64_t one, std::int64_t other) {
    return one > 0 ? one + std::max<std::int64_t>(0, other) : other;
  };
  const auto later = [](const Skip& skip) { return skip.every_epoch ? skip.num_batches : skip.num_later; };
  return {.num_batches = both(num_batches, next.num_batches),
          .every_epoch = every_epoch && next.every_epoch,
          .num_later = both(later(*this), later(next))};
}

SkipBatchSampler::SkipBatchSampler(std::shared_ptr<BatchSampler> batches, Skip skip, std::int64_t num_kept)
    : batches_(std::move(batches)), skip_(skip), num_kept_(std::min(num_kept, skip.num_batches)) {
  if (!batches_) {
    throw InvalidArgument({.where = "SkipBatchSampler", .expected = "a batch sampler", .got = "an empty pointer"});
  }
}

void SkipBatchSampler::reset() {
  batches_->reset();
  kept_.clear();
  std::int64_t num_skipped = 0;
  for (; num_skipped < num_kept_; ++num_skipped) {
    auto batch = batches_->next();
    if (!batch) return;
    kept_.push_back(std::move(*batch));
  }
  for (; num_skipped < skip_.num_batches && batches_->skip(); ++num_skipped) {
  }
}

void SkipBatchSampler::end_pass() {
  skip_.exhaust();
  batches_->end_pass();
}

std::optional<std::int64_t> SkipBatchSampler::num_indices() const {
  const auto all = batches_->num_indices();
  const auto size = batches_->batch_size();
  if (skip_.num_batches <= 0 || !all) return all;
  return size ? std::optional(std::max<std::int64_t>(0, *all - skip_.num_batches * *size)) : std::nullopt;
}

std::shared_ptr<BatchSampler> SkipBatchSampler::with_sampler(std::shared_ptr<Sampler> other) const {
  auto batches = batches_->with_sampler(std::move(other));
  return batches ? std::make_shared<SkipBatchSampler>(std::move(batches), skip_, num_kept_) : nullptr;
}

}  // namespace lockstep::data
