#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep::optim {

/// One number for all parameter groups, or one for each.
using PerGroup = std::variant<double, std::vector<double>>;

enum class Annealing { cos, linear };

struct OneCycleOptions {
  PerGroup max_lr = 0.0;
  std::optional<std::int64_t> total_steps;  ///< else epochs * steps_per_epoch
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> steps_per_epoch;
  double pct_start = 0.3;  ///< share of the cycle in which the rate rises
  Annealing anneal_strategy = Annealing::cos;
  bool cycle_momentum = true;  ///< the momentum (or Adam's first beta) falls while the rate rises
  PerGroup base_momentum = 0.85;
  PerGroup max_momentum = 0.95;
  double div_factor = 25.0;       ///< the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last one is the first / final_div_factor
  bool three_phase = false;       ///< up, down to the first rate, then down to the last
};

/// The rate rises from max_lr / div_factor to max_lr, then falls far below where it began.
///
/// Ends: the step after position `total_steps` is an error.
///
/// @throws InvalidArgument  without a positive number of steps, for a pct_start outside [0, 1], lists that are not as
///                          long as the groups, a phase without length, and an optimizer without momentum
/// @source Smith, Topin 2019, Super-Convergence; PyTorch, torch.optim.lr_scheduler.OneCycleLR
class LOCKSTEP_API OneCycleLr final : public Scheduler {
 public:
  OneCycleLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const OneCycleOptions& options);

  [[nodiscard]] std::vector<double> last_learning_rates() const override;
  [[nodiscard]] std::optional<std::int64_t> total_steps() const override { return total_steps_; }
  [[nodiscard]] const torch::optim::Optimizer* optimizer() const override { return optimizer_.get(); }
  /// The momentum of each group, or its first beta.
  [[nodiscard]] std::vector<double> last_momentums() const;

 private:
  /// What is annealed: the corners of the cycle, one value per group.
  struct Course {
    std::vector<double> start, peak, end;
  };
  /// Where in the cycle a position is.
  struct Place {
    std::size_t phase = 0;
    double share = 0.0;  // of the phase's length
  };

  void advance(std::optional<double> metric) override;
  void visit(StateFields& fields) override;
  void require_what_is_needed() const;
  [[nodiscard]] std::vector<double> phase_ends() const;
  [[nodiscard]] Place place_of(std::int64_t position) const;
  [[nodiscard]] double annealed(double from, double to, double share) const;
  [[nodiscard]] std::vector<double> values_at(const Course& course, const Place& place) const;

  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::int64_t total_steps_;
  double pct_start_;
  bool three_phase_;
  std::string annealing_;
  bool cycle_momentum_;
  Course rates_, momentums_;
};

}  // namespace lockstep::optim
