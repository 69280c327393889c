#pragma once

#include <tuple>

#include "lockstep/config/field.h"
#include "lockstep/config/power_sgd_options.h"

namespace lockstep::config {

/// How a bucket of gradients is communicated.
/// @source Accelerate, DDPCommunicationHookType
enum class DdpCommunicationHookType {
  no,                 ///< averaged as it is
  fp16,               ///< averaged as float16
  bf16,               ///< averaged as bfloat16
  power_sgd,          ///< each matrix by two factors of low rank
  batched_power_sgd,  ///< the whole bucket by two factors of low rank: quicker, and coarser
};

/// How DDP synchronises gradients.
///
/// @clause DDP-004..010
/// @source Accelerate, DistributedDataParallelKwargs; PyTorch, DistributedDataParallel
struct DistributedDataParallelKwargs {
  int dim = 0;                    ///< of the batch; only 0
  bool broadcast_buffers = true;  ///< buffers are rank 0's before each training forward that synchronises
  /// A bucket closes once it holds this many MiB. With the default the first one closes at 1 MiB; any other value
  /// counts for the first one too.
  int bucket_cap_mb = 25;
  bool find_unused_parameters = false;   ///< parameters may be left out of a forward, on some ranks or all
  bool check_reduction = false;          ///< without effect, as in PyTorch: what it checked is always checked
  bool gradient_as_bucket_view = false;  ///< gradients live in the buckets: one copy less
  bool static_graph = false;             ///< every iteration uses the same parameters in the same way as the first
  DdpCommunicationHookType comm_hook = DdpCommunicationHookType::no;
  /// fp16 or bf16: the hook is given the bucket in that dtype. Without a hook it does nothing.
  DdpCommunicationHookType comm_wrapper = DdpCommunicationHookType::no;
  PowerSgdOptions comm_state_option;  ///< for the two hooks of that name; the others ignore it

  bool operator==(const DistributedDataParallelKwargs&) const = default;
};

/// Without the hook's, which go to the engine and not to its constructor (KW-006).
constexpr auto fields_of(const DistributedDataParallelKwargs&) {
  using Kwargs = DistributedDataParallelKwargs;
  return std::tuple{Field{"dim", &Kwargs::dim},
                    Field{"check_reduction", &Kwargs::check_reduction},
                    Field{"broadcast_buffers", &Kwargs::broadcast_buffers},
                    Field{"bucket_cap_mb", &Kwargs::bucket_cap_mb},
                    Field{"find_unused_parameters", &Kwargs::find_unused_parameters},
                    Field{"gradient_as_bucket_view", &Kwargs::gradient_as_bucket_view},
                    Field{"static_graph", &Kwargs::static_graph}};
}

}  // namespace lockstep::config
