#pragma once

namespace lockstep::config {

/// How gradients are accumulated over micro-batches.
///
/// @clause ACC-001..003, 008, 013, 014
/// @source Accelerate, GradientAccumulationPlugin
struct GradientAccumulationPlugin {
  int num_steps = 1;                 ///< micro-batches per optimizer step
  bool adjust_scheduler = true;      ///< count the scheduler's step in micro-batches without synchronisation too
  bool sync_with_dataloader = true;  ///< the last micro-batch of a pass ends the window
  bool sync_each_batch = false;      ///< reduce in every backward

  bool operator==(const GradientAccumulationPlugin&) const = default;
};

}  // namespace lockstep::config
