#include "lockstep/data/skip_first_batches.h"

#include "lockstep/base/error.h"
#include "lockstep/data/skip_batch_sampler.h"

namespace lockstep::data {

DataLoader skip_first_batches(const DataLoader& loader, std::int64_t num_batches, bool every_epoch) {
  const Skip skip{.num_batches = num_batches, .every_epoch = every_epoch};
  if (loader.is_iterable()) return loader.with_skip(skip);
  if (loader.batch_sampler()) {
    return loader.with_batch_sampler(std::make_shared<SkipBatchSampler>(loader.batch_sampler(), skip));
  }
  throw TypeError({.where = "skip_first_batches",
                   .expected = "a loader with batches to skip",
                   .got = "one without (batch_size unset)",
                   .fix = "Give the loader a batch_size, or leave the items out in its sampler."});
}

std::shared_ptr<PreparedDataLoader> skip_first_batches(const PreparedDataLoader& loader, std::int64_t num_batches,
                                                       bool every_epoch) {
  return loader.skip_first_batches(num_batches, every_epoch);
}

}  // namespace lockstep::data
