#include "lockstep/parallel/ddp/bucket_plan.h"

#include <algorithm>
#include <limits>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "lockstep/base/error.h"
#include "lockstep/config/distributed_data_parallel_kwargs.h"

namespace lockstep::parallel {

BucketLimits bucket_limits(int bucket_cap_mb) {
  constexpr std::int64_t kMiB = 1 << 20;
  const bool is_default = bucket_cap_mb == config::DistributedDataParallelKwargs{}.bucket_cap_mb;
  if (!is_default) return {.first_bytes = bucket_cap_mb * kMiB, .other_bytes = bucket_cap_mb * kMiB};
  return {.first_bytes = kMiB, .other_bytes = 25 * kMiB};
}

std::vector<std::vector<std::size_t>> first_buckets(const std::vector<at::Tensor>& parameters,
                                                    const BucketLimits& limits, bool are_rebuilt) {
  std::vector<std::size_t> sizes{static_cast<std::size_t>(limits.first_bytes),
                                 static_cast<std::size_t>(limits.other_bytes)};
  if (are_rebuilt) sizes = {std::numeric_limits<std::size_t>::max()};
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(parameters, sizes));
  std::ranges::reverse(buckets);
  return buckets;
}

}  // namespace lockstep::parallel
