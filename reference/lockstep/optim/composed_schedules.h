#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep::optim {

/// Several schedules of one optimizer that all move at each step, in their order: a LinearLr as warm-up times an
/// ExponentialLr, say.
/// @source PyTorch, torch.optim.lr_scheduler.ChainedScheduler
class LOCKSTEP_API ChainedScheduler final : public Scheduler {
 public:
  /// @throws InvalidArgument  for no schedule, for those that need a metric, and for those of different optimizers
  explicit ChainedScheduler(std::vector<std::shared_ptr<Scheduler>> schedulers);

  [[nodiscard]] std::vector<double> last_learning_rates() const override;
  [[nodiscard]] const torch::optim::Optimizer* optimizer() const override { return schedulers_.front()->optimizer(); }
  void undo() override;
  void restart() override;

 private:
  void advance(std::optional<double> metric) override;
  void visit(StateFields& fields) override;

  std::vector<std::shared_ptr<Scheduler>> schedulers_;
};

/// Several schedules of one optimizer, one after the other: each starts anew at its milestone.
///
/// LinearLr, then ExponentialLr at milestone 5: positions 0 to 4 are the first's, and position 5 is the other's 0.
/// Composed schedules may only stand first.
///
/// @source PyTorch, torch.optim.lr_scheduler.SequentialLR
class LOCKSTEP_API SequentialLr final : public Scheduler {
 public:
  /// @param schedulers  just made
  /// @param milestones  one less than schedules, rising
  /// @throws InvalidArgument  for no schedule, for those that need a metric, for those of different optimizers, and for
  ///                          another number of milestones
  SequentialLr(std::shared_ptr<torch::optim::Optimizer> optimizer, std::vector<std::shared_ptr<Scheduler>> schedulers,
               std::vector<std::int64_t> milestones);

  [[nodiscard]] std::vector<double> last_learning_rates() const override;
  [[nodiscard]] const torch::optim::Optimizer* optimizer() const override { return optimizer_.get(); }
  void undo() override;
  void restart() override;

 private:
  void advance(std::optional<double> metric) override;
  void visit(StateFields& fields) override;

  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<std::shared_ptr<Scheduler>> schedulers_;
  std::vector<std::int64_t> milestones_;
};

}  // namespace lockstep::optim
