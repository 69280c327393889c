#pragma once

#include <cstdint>

namespace lockstep::config {

/// How PowerSGD approximates gradients. For Accelerate's `comm_state_option`.
///
/// @clause DDP-009
/// @source Vogels et al. 2019, PowerSGD; PyTorch, PowerSGDState
struct PowerSgdOptions {
  std::int64_t matrix_approximation_rank = 1;  ///< of the two factors that stand for a gradient matrix
  std::int64_t start_powerSGD_iter = 1000;     ///< until then gradients are averaged exactly; the buckets must be final
  double min_compression_rate = 2;  ///< matrices whose factors are not smaller by this factor are averaged exactly
  bool use_error_feedback = true;   ///< what the approximation lost is added to the next gradient
  bool warm_start = true;           ///< the next approximation begins with the factors of the last
  double orthogonalization_epsilon =
      0;                          ///< added to a column's norm before dividing by it; 0: columns of zeroes give nan
  std::uint32_t random_seed = 0;  ///< of the first factors, the same on all ranks
  std::int64_t compression_stats_logging_frequency = 10000;  ///< in iterations
  bool batch_tensors_with_same_shape = false;  ///< multiply matrices of one shape at once; not in batched_power_sgd

  bool operator==(const PowerSgdOptions&) const = default;
};

}  // namespace lockstep::config
