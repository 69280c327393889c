#include "lockstep/optim/prepared_scheduler.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"

namespace lockstep::optim {

PreparedScheduler::PreparedScheduler(std::shared_ptr<Scheduler> scheduler,
                                     std::vector<std::shared_ptr<const PreparedOptimizer>> optimizers,
                                     const state::GradientState& gradient_state,
                                     std::shared_ptr<accounting::Account> account, PreparedSchedulerOptions options)
    : scheduler_(std::move(scheduler)),
      optimizers_(std::move(optimizers)),
      gradient_state_(gradient_state),
      account_(account ? std::move(account) : std::make_shared<accounting::Account>(0)),
      options_(options) {
  if (options_.world_size < 1) {
    throw InvalidArgument({.where = "PreparedScheduler",
                           .expected = "a positive world_size",
                           .got = fmt::format("{}", options_.world_size),
                           .fix = "Pass the number of ranks."});
  }
}

void PreparedScheduler::step(std::optional<double> metric) {
  const auto due = steps_due();
  if (due == 0) return;
  if (due > 1) warn_if_ended(due);
  const auto guarded = options_.step_with_optimizer && !options_.split_batches;
  const auto before = scheduler_->last_epoch();
  for (int i = 0; i < due && !(guarded && has_ended()); ++i) scheduler_->step(metric);
  if (scheduler_->last_epoch() == before) return;
  account_->emit([this] { return accounting::SchedulerStep{.learning_rates = last_learning_rates()}; });
}

void PreparedScheduler::warn_if_ended(int due) {
  const auto planned = scheduler_->planned_steps();
  if (has_warned_ || !planned || scheduler_->last_epoch() < *planned) return;
  has_warned_ = true;
  log::warning(fmt::format(
      "the schedule of {0} steps has ended after {1} optimizer steps, each of which moves it by {2}, the number of "
      "ranks. If {0} counts optimizer steps, do not prepare the scheduler, or make it for {3} steps.",
      *planned, (*planned + due - 1) / due, due, *planned * due));
}

int PreparedScheduler::steps_due() {
  if (!options_.step_with_optimizer) return 1;
  if (!gradient_state_.sync_gradients) {
    if (gradient_state_.adjust_scheduler) scheduler_->count_step();
    return 0;
  }
  if (any_optimizer_skipped()) return 0;
  return options_.split_batches ? 1 : options_.world_size;
}

bool PreparedScheduler::any_optimizer_skipped() const {
  return std::any_of(optimizers_.begin(), optimizers_.end(),
                     [](const auto& optimizer) { return optimizer->step_was_skipped(); });
}

bool PreparedScheduler::has_ended() const {
  const auto total = scheduler_->total_steps();
  return total && scheduler_->step_count() > *total;
}

std::vector<std::shared_ptr<const PreparedOptimizer>> associated_optimizers(
    const Scheduler& scheduler, const std::vector<std::shared_ptr<const PreparedOptimizer>>& prepared) {
  const auto own = std::find_if(prepared.begin(), prepared.end(), [&scheduler](const auto& optimizer) {
    return optimizer->optimizer().get() == scheduler.optimizer();
  });
  return own == prepared.end() ? prepared : std::vector{*own};
}

}  // namespace lockstep::optim
