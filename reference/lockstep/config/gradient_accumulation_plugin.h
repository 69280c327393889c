#pragma once

namespace lockstep::config {

/// What the sum over an accumulation window is divided by. It matters for the shorter window at the end of a pass
/// alone.
enum class AccumulationRule {
  steps,       ///< always num_steps, as Accelerate does (ACC-005): 2 micro-batches in windows of 4 count half
  window_mean  ///< the number of micro-batches in the window: each window is a mean
};

/// How gradients are accumulated over micro-batches.
///
/// @clause ACC-001..003, 008, 013, 014
/// @source Accelerate, GradientAccumulationPlugin
struct GradientAccumulationPlugin {
  int num_steps = 1;                 ///< micro-batches per optimizer step
  bool adjust_scheduler = true;      ///< count the scheduler's step in micro-batches without synchronisation too
  bool sync_with_dataloader = true;  ///< the last micro-batch of a pass ends the window
  bool sync_each_batch = false;      ///< reduce in every backward
  AccumulationRule accumulation_rule = AccumulationRule::steps;

  bool operator==(const GradientAccumulationPlugin&) const = default;
};

}  // namespace lockstep::config
