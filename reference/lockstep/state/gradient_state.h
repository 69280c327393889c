#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/config/gradient_accumulation_plugin.h"

namespace lockstep::state {

/// What a loader tells the rest of the training loop while its pass runs. The loader owns it; the gradient state only
/// watches (STATE-123).
struct DataLoaderStatus {
  bool end_of_dataloader = false;  ///< true exactly while the body of the last step runs (DATA-065)
  std::int64_t remainder = -1;     ///< real samples in the last global batch; 0: none missing; -1: unknown (DATA-066)
};

/// How gradients are accumulated, and where the data stands: what `accumulate`, the optimizer and the scheduler
/// wrappers and `gather_for_metrics` agree on. One per rank, shared by all Accelerators of the rank.
///
/// @clause STATE-120..124, ACC-001..004, ACC-015
/// @source Accelerate, GradientState
class LOCKSTEP_API GradientState {
 public:
  /// Whether the current micro-step ends an accumulation window: gradients are reduced and the optimizer may step.
  bool sync_gradients = true;
  int num_steps = 1;                 ///< micro-steps per optimizer step
  bool adjust_scheduler = false;     ///< count the scheduler's step in micro-steps without synchronisation too
  bool sync_with_dataloader = true;  ///< the last micro-step of a pass ends the window
  bool sync_each_batch = false;      ///< reduce in every backward, without changing when the optimizer steps
  config::AccumulationRule accumulation_rule = config::AccumulationRule::steps;

  /// The loader whose pass began last and has not been exhausted; none outside any pass (STATE-121).
  [[nodiscard]] std::shared_ptr<const DataLoaderStatus> active_dataloader() const;
  [[nodiscard]] bool in_dataloader() const { return active_dataloader() != nullptr; }
  /// Of the active loader; false and -1 outside any pass.
  [[nodiscard]] bool end_of_dataloader() const;
  [[nodiscard]] std::int64_t remainder() const;

  /// A pass begins: this loader is the active one. A pass that was left early stays registered (DATA-073).
  void add_dataloader(const std::shared_ptr<DataLoaderStatus>& loader);
  /// The pass is exhausted: every registration of this loader goes; the one before it is active again (STATE-122).
  void remove_dataloader(const std::shared_ptr<DataLoaderStatus>& loader);
  /// Registrations in force, those of early exits included.
  [[nodiscard]] std::size_t num_registrations() const { return loaders_.size(); }

 private:
  std::vector<std::weak_ptr<DataLoaderStatus>> loaders_;
};

}  // namespace lockstep::state
