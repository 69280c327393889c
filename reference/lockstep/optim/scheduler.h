#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/export.h"

namespace torch::optim {
class LRScheduler;
class Optimizer;
class ReduceLROnPlateauScheduler;
}  // namespace torch::optim

namespace lockstep::optim {

/// Sets an optimizer's learning rates from step to step. Users derive their own: `advance` does the work, `step()`
/// counts.
///
/// A schedule begins at position 0, whose rates it sets when it is made; each step moves it on by one.
///
/// @source PyTorch, torch.optim.lr_scheduler.LRScheduler
class LOCKSTEP_API Scheduler {
 public:
  virtual ~Scheduler();

  /// @param metric  what plateau-type schedules judge progress by; the others need none
  void step(std::optional<double> metric = std::nullopt);

  /// Per parameter group, as they are now.
  [[nodiscard]] virtual std::vector<double> last_learning_rates() const = 0;
  /// How many steps a schedule that ends has; stepping beyond them is its error.
  [[nodiscard]] virtual std::optional<std::int64_t> total_steps() const { return std::nullopt; }
  /// The optimizer whose rates it sets; nullptr: unknown.
  [[nodiscard]] virtual const torch::optim::Optimizer* optimizer() const { return nullptr; }

  /// The position: steps taken.
  [[nodiscard]] std::int64_t last_epoch() const noexcept { return last_epoch_; }
  /// PyTorch's count, by which a schedule's end is guarded: 1 when made, one more at each step, and at each
  /// `count_step`.
  [[nodiscard]] std::int64_t step_count() const noexcept { return step_count_; }
  /// Counts a step without taking it (ACC-014).
  void count_step() noexcept { ++step_count_; }

 protected:
  /// Sets the rates of position last_epoch(), which is the new one already.
  virtual void advance(std::optional<double> metric) = 0;

 private:
  std::int64_t last_epoch_ = 0;
  std::int64_t step_count_ = 1;
};

/// What a learning rate is multiplied by at a position.
using LrLambda = std::function<double(std::int64_t epoch)>;

/// Each group's rate at the time when the schedule was made, times lambda(position).
///
/// Rate 0.1, lambda 0.95^epoch: 0.1, then 0.095, 0.09025, ...
///
/// @source PyTorch, torch.optim.lr_scheduler.LambdaLR
class LOCKSTEP_API LambdaLr final : public Scheduler {
 public:
  /// One lambda for all groups.
  LambdaLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const LrLambda& lambda);
  /// @param lambdas  one per parameter group
  /// @throws InvalidArgument  if they are not as many as the groups
  LambdaLr(std::shared_ptr<torch::optim::Optimizer> optimizer, std::vector<LrLambda> lambdas);

  [[nodiscard]] std::vector<double> last_learning_rates() const override;
  [[nodiscard]] const torch::optim::Optimizer* optimizer() const override { return optimizer_.get(); }

 private:
  void advance(std::optional<double> metric) override;

  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<double> base_learning_rates_;
  std::vector<LrLambda> lambdas_;
};

/// A scheduler of LibTorch, with LibTorch's numbers: it sets the rates of position p in step p+1, one later than
/// PyTorch's in Python (StepLR of 2 steps by 0.1: 1 1 .1 .1, not 1 .1 .1 .01).
/// @param optimizer  the one it was made with, which LibTorch keeps to itself; none: it is followed with every prepared
///                   optimizer (ACC-033), and the caller keeps it alive
LOCKSTEP_API std::shared_ptr<Scheduler> from_torch(std::shared_ptr<torch::optim::LRScheduler> scheduler,
                                                   std::shared_ptr<torch::optim::Optimizer> optimizer = nullptr);
/// Its steps need a metric. @throws InvalidArgument  by step() without one
LOCKSTEP_API std::shared_ptr<Scheduler> from_torch(std::shared_ptr<torch::optim::ReduceLROnPlateauScheduler> scheduler,
                                                   std::shared_ptr<torch::optim::Optimizer> optimizer);

}  // namespace lockstep::optim
