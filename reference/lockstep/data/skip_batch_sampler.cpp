#include "lockstep/data/skip_batch_sampler.h"

#include <c10/util/StringUtil.h>

#include "lockstep/base/error.h"

namespace lockstep::data {

std::int64_t Skip::left_of(std::int64_t total) const {
  if (num_batches <= total) return total - num_batches;
  throw InvalidArgument({.where = "length after skip_first_batches",
                         .expected = c10::str("at most ", total, " batches to be skipped"),
                         .got = c10::str(num_batches),
                         .fix = "A pass over this loader is empty."});
}

SkipBatchSampler::SkipBatchSampler(std::shared_ptr<BatchSampler> batches, Skip skip)
    : batches_(std::move(batches)), skip_(skip) {
  if (!batches_) {
    throw InvalidArgument({.where = "SkipBatchSampler", .expected = "a batch sampler", .got = "an empty pointer"});
  }
}

void SkipBatchSampler::reset() {
  batches_->reset();
  in_pass_ = true;
  for (std::int64_t i = 0; i < skip_.num_batches && batches_->skip(); ++i) {
  }
}

std::optional<Batch> SkipBatchSampler::next() {
  auto batch = batches_->next();
  if (!batch && in_pass_) {
    in_pass_ = false;
    skip_.exhaust();
  }
  return batch;
}

std::shared_ptr<BatchSampler> SkipBatchSampler::with_sampler(std::shared_ptr<Sampler> other) const {
  auto batches = batches_->with_sampler(std::move(other));
  return batches ? std::make_shared<SkipBatchSampler>(std::move(batches), skip_) : nullptr;
}

}  // namespace lockstep::data
