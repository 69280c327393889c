#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep::optim {

// PyTorch's schedules with PyTorch's numbers. Each multiplies the rates that it finds, so that several may work on one
// optimizer: after 3 steps of an ExponentialLr by 0.9 a rate of 0.1 is 0.1 * 0.9 * 0.9 * 0.9, whatever else has
// changed it meanwhile.

/// A schedule by a rule for one group's rate.
class LOCKSTEP_API RateSchedule : public Scheduler {
 public:
  [[nodiscard]] std::vector<double> last_learning_rates() const override;
  [[nodiscard]] const torch::optim::Optimizer* optimizer() const override { return optimizer_.get(); }

 protected:
  explicit RateSchedule(std::shared_ptr<torch::optim::Optimizer> optimizer);

  /// The rate of position last_epoch().
  /// @param rate  that of the position before
  /// @param base  that from before any schedule
  [[nodiscard]] virtual double next_rate(double rate, double base) const = 0;
  /// The rate of position 0, whatever came before.
  [[nodiscard]] virtual double first_rate(double base) const { return base; }
  void visit(StateFields& fields) override;

 private:
  void advance(std::optional<double> metric) override;
  void return_to_start() override;

  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::vector<double> base_learning_rates_;
};

struct ConstantLrOptions {
  double factor = 1.0 / 3;
  std::int64_t total_iters = 5;
};

/// `factor` times the rate until position `total_iters`, then the rate.
/// @source PyTorch, torch.optim.lr_scheduler.ConstantLR
class LOCKSTEP_API ConstantLr final : public RateSchedule {
 public:
  /// @throws InvalidArgument  unless 0 <= factor <= 1; by the step to `total_iters` for factor 0
  explicit ConstantLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const ConstantLrOptions& options = {});

 private:
  [[nodiscard]] double next_rate(double rate, double base) const override;
  [[nodiscard]] double first_rate(double base) const override;
  void visit(StateFields& fields) override;
  ConstantLrOptions options_;
};

struct LinearLrOptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1.0;
  std::int64_t total_iters = 5;
};

/// From `start_factor` to `end_factor` times the rate, in equal steps until position `total_iters`.
/// @source PyTorch, torch.optim.lr_scheduler.LinearLR
class LOCKSTEP_API LinearLr final : public RateSchedule {
 public:
  /// @throws InvalidArgument  unless 0 < start_factor <= 1 and 0 <= end_factor <= 1
  explicit LinearLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const LinearLrOptions& options = {});

 private:
  [[nodiscard]] double next_rate(double rate, double base) const override;
  [[nodiscard]] double first_rate(double base) const override { return base * options_.start_factor; }
  void visit(StateFields& fields) override;
  LinearLrOptions options_;
};

/// Times `gamma` at every `step_size`-th position: 1 1 .1 .1 .01 for 2 and 0.1.
/// @source PyTorch, torch.optim.lr_scheduler.StepLR
class LOCKSTEP_API StepLr final : public RateSchedule {
 public:
  /// @throws InvalidArgument  unless step_size is positive
  StepLr(std::shared_ptr<torch::optim::Optimizer> optimizer, std::int64_t step_size, double gamma = 0.1);

 private:
  [[nodiscard]] double next_rate(double rate, double base) const override;
  void visit(StateFields& fields) override;
  std::int64_t step_size_;
  double gamma_;
};

/// Times `gamma` at each milestone, as often as it is among them.
/// @source PyTorch, torch.optim.lr_scheduler.MultiStepLR
class LOCKSTEP_API MultiStepLr final : public RateSchedule {
 public:
  MultiStepLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const std::vector<std::int64_t>& milestones,
              double gamma = 0.1);

 private:
  [[nodiscard]] double times_gamma(double rate, std::int64_t position) const;
  [[nodiscard]] double next_rate(double rate, double base) const override;
  [[nodiscard]] double first_rate(double base) const override;
  void visit(StateFields& fields) override;
  std::map<std::int64_t, std::int64_t> milestones_;  // position -> how often
  double gamma_;
};

/// Times `gamma` at every position.
/// @source PyTorch, torch.optim.lr_scheduler.ExponentialLR
class LOCKSTEP_API ExponentialLr final : public RateSchedule {
 public:
  ExponentialLr(std::shared_ptr<torch::optim::Optimizer> optimizer, double gamma);

 private:
  [[nodiscard]] double next_rate(double rate, double base) const override;
  void visit(StateFields& fields) override;
  double gamma_;
};

struct PolynomialLrOptions {
  std::int64_t total_iters = 5;
  double power = 1.0;
};

/// The rate times (1 - position / total_iters)^power, 0 from position `total_iters` on.
/// @source PyTorch, torch.optim.lr_scheduler.PolynomialLR
class LOCKSTEP_API PolynomialLr final : public RateSchedule {
 public:
  explicit PolynomialLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const PolynomialLrOptions& options = {});

 private:
  [[nodiscard]] double next_rate(double rate, double base) const override;
  void visit(StateFields& fields) override;
  PolynomialLrOptions options_;
};

/// Half a cosine from the rate to `eta_min` in `t_max` steps, then back up, and so on.
/// @source Loshchilov, Hutter 2017, SGDR, section 3, without restarts; PyTorch,
/// torch.optim.lr_scheduler.CosineAnnealingLR
class LOCKSTEP_API CosineAnnealingLr final : public RateSchedule {
 public:
  /// @throws InvalidArgument  unless t_max is positive
  CosineAnnealingLr(std::shared_ptr<torch::optim::Optimizer> optimizer, std::int64_t t_max, double eta_min = 0.0);

  /// Half a period: beyond it the rate rises again.
  [[nodiscard]] std::optional<std::int64_t> planned_steps() const override { return t_max_; }

 private:
  [[nodiscard]] double next_rate(double rate, double base) const override;
  void visit(StateFields& fields) override;
  std::int64_t t_max_;
  double eta_min_;
};

}  // namespace lockstep::optim
