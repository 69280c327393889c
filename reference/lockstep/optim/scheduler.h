#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/optim/state_fields.h"
#include "lockstep/value/value.h"

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
  /// After how many steps it has done what it was made for, although it may go on; none: unknown.
  [[nodiscard]] virtual std::optional<std::int64_t> planned_steps() const { return total_steps(); }
  /// The optimizer whose rates it sets; nullptr: unknown.
  [[nodiscard]] virtual const torch::optim::Optimizer* optimizer() const { return nullptr; }

  /// The position: steps taken.
  [[nodiscard]] std::int64_t last_epoch() const noexcept { return last_epoch_; }
  /// PyTorch's count, by which a schedule's end is guarded: 1 when made, one more at each step, and at each
  /// `count_step`.
  [[nodiscard]] std::int64_t step_count() const noexcept { return step_count_; }
  /// Counts a step without taking it (ACC-014).
  void count_step() noexcept { ++step_count_; }
  /// Whether step() wants a metric.
  [[nodiscard]] virtual bool needs_metric() const { return false; }

  /// Position, counts and settings under PyTorch's names, as in the file `scheduler.bin`. The rates themselves belong
  /// to the optimizer.
  [[nodiscard]] Value state_dict() const;
  /// Takes over position, counts and settings; settings that the dict lacks stay, and the optimizer is not touched.
  /// When it throws, all is as it was.
  /// @throws KeyError         without `last_epoch`
  /// @throws TypeError        for an entry of another kind than the setting's
  /// @throws InvalidArgument  for a list of another length
  void load_state_dict(const Value& state);

  // What schedules that are made of others need.

  /// Takes the step that set position 0 back in the count; rates stay as they are.
  virtual void undo() { --last_epoch_; }
  /// Takes that step, as it is taken when a schedule is made.
  void begin();
  /// Returns to position 0, and sets its rates whatever they are now.
  /// @throws NotSupported  by schedules that are made of others
  virtual void restart();

 protected:
  /// Sets the rates of position last_epoch(), which is the new one already.
  virtual void advance(std::optional<double> metric) = 0;
  /// Sets the rates of position 0 whatever they are now.
  virtual void return_to_start() { advance(std::nullopt); }
  /// Names the settings that state_dict() holds beside the counts.
  virtual void visit(StateFields& /*fields*/) {}
  /// What a schedule's constructor ends with, unless the rates it finds are those of position 0.
  void start();
  /// Whether the step being taken is that of begin().
  [[nodiscard]] bool is_beginning() const noexcept { return is_beginning_; }

 private:
  void visit_all(StateFields& fields);

  std::int64_t last_epoch_ = 0;
  std::int64_t step_count_ = 1;
  bool is_beginning_ = false;
};

/// What a learning rate is multiplied by at a position.
using LrLambda = std::function<double(std::int64_t epoch)>;

/// Each group's rate from before any schedule, times lambda(position).
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
  void visit(StateFields& fields) override;

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
