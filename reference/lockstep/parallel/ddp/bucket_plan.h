#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lockstep/base/export.h"

namespace lockstep::parallel {

/// A bucket closes once it holds as many bytes as its limit.
struct BucketLimits {
  std::int64_t first_bytes = 0;  ///< of the first bucket, small so that communication starts early
  std::int64_t other_bytes = 0;
  bool operator==(const BucketLimits&) const = default;
};

/// With the default, 25 MiB, 1 MiB for the first bucket; any other cap counts for that one too.
LOCKSTEP_API BucketLimits bucket_limits(int bucket_cap_mb);

/// The buckets that training starts with, each a list of indices into `parameters`, in the order in which they are
/// reduced.
///
/// Backward runs from the last parameter to the first, roughly. Buckets that stay are therefore cut in registration
/// order and reduced from the back. Where they are made anew after one iteration, in the order in which gradients
/// became ready in it, all parameters start in a single bucket per dtype and device.
///
/// fp32 sizes 100, 50, 60, 200, 10, 300 and limits of 400 and 1000 bytes: cut [0] [1 2 3] [4 5], reduced from the back.
///
/// @clause DDP-004
LOCKSTEP_API std::vector<std::vector<std::size_t>> first_buckets(const std::vector<at::Tensor>& parameters,
                                                                 const BucketLimits& limits, bool are_rebuilt);

}  // namespace lockstep::parallel
