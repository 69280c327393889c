#pragma once

#include <optional>
#include <tuple>

#include "lockstep/config/field.h"

namespace lockstep::config {

/// How DDP synchronises gradients.
///
/// @clause DDP-004..008, DDP-010
/// @source Accelerate, DistributedDataParallelKwargs; PyTorch, DistributedDataParallel
struct DistributedDataParallelKwargs {
  bool broadcast_buffers = true;  ///< buffers are rank 0's before each training forward that synchronises
  /// A bucket closes once it holds this many MiB. None: 25, and 1 for the first; a value counts for the first one too.
  std::optional<int> bucket_cap_mb;
  bool find_unused_parameters = false;   ///< parameters may be left out of a forward, on some ranks or all
  bool gradient_as_bucket_view = false;  ///< gradients live in the buckets: one copy less
  bool static_graph = false;             ///< every iteration uses the same parameters in the same way as the first

  bool operator==(const DistributedDataParallelKwargs&) const = default;
};

constexpr auto fields_of(const DistributedDataParallelKwargs&) {
  using Kwargs = DistributedDataParallelKwargs;
  return std::tuple{
      Field{"broadcast_buffers", &Kwargs::broadcast_buffers}, Field{"bucket_cap_mb", &Kwargs::bucket_cap_mb},
      Field{"find_unused_parameters", &Kwargs::find_unused_parameters},
      Field{"gradient_as_bucket_view", &Kwargs::gradient_as_bucket_view}, Field{"static_graph", &Kwargs::static_graph}};
}

}  // namespace lockstep::config
