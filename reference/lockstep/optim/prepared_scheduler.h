#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/accounting/account.h"
#include "lockstep/base/export.h"
#include "lockstep/optim/prepared_optimizer.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/state/gradient_state.h"

namespace lockstep::optim {

struct PreparedSchedulerOptions {
  bool step_with_optimizer = true;  ///< false: every call is one step of the schedule
  bool split_batches = false;  ///< the loaders cut one batch for all ranks: the schedule counts batches as they are
  int world_size = 1;
};

/// A scheduler that follows the optimizer's real steps. Written into every micro-step of a loop, `step()` moves the
/// schedule only when gradients were synchronised and no optimizer it belongs to skipped its step.
///
/// Users write a schedule for one process, in steps of one batch. On w ranks an optimizer step sees w batches, so the
/// schedule moves by w, or by 1 with `split_batches`, where the ranks share one batch. A schedule that knows its
/// `total_steps` is not driven beyond them: on 3 ranks, 7 in all, it stands at 3, 6, 7, 7. (Not so with
/// `split_batches`, where a step too many is the schedule's own error.)
///
/// A schedule that counts optimizer steps of all ranks already is over w times too early here, which a warning says as
/// soon as it is seen: leave it out of `prepare`, and it moves by one at each of its own step() calls.
///
/// Linear decay over 20 steps, 2 ranks, 10 micro-steps in windows of 4: 3 optimizer steps, the schedule at 6, the rate
/// 0.9, 0.8, 0.7 of its start.
///
/// With the gradient state's `adjust_scheduler`, micro-steps without synchronisation count in the scheduler's
/// step_count(), and so against total_steps, without moving the schedule (ACC-014).
///
/// @clause ACC-014, ACC-030..033
/// @source Accelerate, AcceleratedScheduler
class LOCKSTEP_API PreparedScheduler {
 public:
  /// @param optimizers      those whose skipped steps the schedule leaves out as well (associated_optimizers)
  /// @param gradient_state  that of this rank; outlives the scheduler
  /// @param account         none: nobody is told
  /// @throws InvalidArgument  unless world_size is positive
  PreparedScheduler(std::shared_ptr<Scheduler> scheduler,
                    std::vector<std::shared_ptr<const PreparedOptimizer>> optimizers,
                    const state::GradientState& gradient_state, std::shared_ptr<accounting::Account> account = nullptr,
                    PreparedSchedulerOptions options = {});

  /// @param metric  for plateau-type schedules, which count w times per call too
  void step(std::optional<double> metric = std::nullopt);

  [[nodiscard]] std::vector<double> last_learning_rates() const { return scheduler_->last_learning_rates(); }
  /// The wrapped schedule's position.
  [[nodiscard]] std::int64_t last_epoch() const { return scheduler_->last_epoch(); }
  /// The wrapped schedule's own.
  [[nodiscard]] Value state_dict() const { return scheduler_->state_dict(); }
  void load_state_dict(const Value& state) { scheduler_->load_state_dict(state); }
  [[nodiscard]] const std::shared_ptr<Scheduler>& scheduler() const noexcept { return scheduler_; }

 private:
  [[nodiscard]] bool any_optimizer_skipped() const;
  [[nodiscard]] bool has_ended() const;
  int steps_due();
  void warn_if_ended(int due);

  std::shared_ptr<Scheduler> scheduler_;
  std::vector<std::shared_ptr<const PreparedOptimizer>> optimizers_;
  const state::GradientState& gradient_state_;
  std::shared_ptr<accounting::Account> account_;
  PreparedSchedulerOptions options_;
  bool has_warned_ = false;
};

/// Of the prepared optimizers, the one that wraps the scheduler's own; all of them if none does.
/// @clause ACC-033
LOCKSTEP_API std::vector<std::shared_ptr<const PreparedOptimizer>> associated_optimizers(
    const Scheduler& scheduler, const std::vector<std::shared_ptr<const PreparedOptimizer>>& prepared);

}  // namespace lockstep::optim
