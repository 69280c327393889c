#pragma once

#include <torch/optim/optimizer.h>

#include <iosfwd>
#include <memory>
#include <vector>

#include "lockstep/accounting/account.h"
#include "lockstep/base/export.h"
#include "lockstep/optim/gradient_scaler.h"
#include "lockstep/state/gradient_state.h"

namespace lockstep::optim {

/// What an optimizer derives from, beside torch::optim::Optimizer, if it acts differently while the model is evaluated
/// (a schedule-free one, say). LibTorch's optimizers have no such thing.
class LOCKSTEP_API TrainingMode {
 public:
  virtual ~TrainingMode() = default;
  virtual void train() = 0;
  virtual void eval() = 0;
};

/// An optimizer that steps only when gradients are complete. Written into every micro-step of a loop, `step()` and
/// `zero_grad()` act in those that end an accumulation window, and do nothing in the others.
///
/// A window of 2, gradients 1 and 3: after the first micro-step the parameter is as it was and the gradient is 1; after
/// the second the optimizer has used 4.
///
/// `zero_grad()` placed before backward clears, in the micro-step that ends the window, what the window has gathered
/// (ACC-021): place it after `step()`.
///
/// Each step that was made closes a step of the rank's account; whether it was made or skipped, observers get an
/// OptimizerStep with the learning rates it used.
///
/// @clause ACC-015, ACC-020..025, ACC-027
/// @source Accelerate, AcceleratedOptimizer
class LOCKSTEP_API PreparedOptimizer {
 public:
  /// @param gradient_state  that of this rank; outlives the optimizer
  /// @param account         none: nobody is told
  /// @param scaler          decides whether a step is made; may be shared between optimizers; none: every step is
  PreparedOptimizer(std::shared_ptr<torch::optim::Optimizer> optimizer, const state::GradientState& gradient_state,
                    std::shared_ptr<accounting::Account> account = nullptr,
                    std::shared_ptr<GradientScaler> scaler = nullptr);

  /// One step with the gradients that are there, if they are complete.
  /// @param closure  handed to the optimizer (LBFGS needs one)
  /// @throws AssertionError  with a scaler, when no parameter has a gradient (ACC-025)
  void step(const LossClosure& closure = nullptr);
  /// Forgets the gradients, if they are complete. @param set_to_none  false: fills them with zeroes
  void zero_grad(bool set_to_none = true);

  /// Whether the scaler left out the last step that was due. Micro-steps that do not end a window leave it as it is.
  [[nodiscard]] bool step_was_skipped() const noexcept { return step_was_skipped_; }

  /// Of the wrapped optimizer, to read and to change.
  [[nodiscard]] std::vector<torch::optim::OptimizerParamGroup>& param_groups() const {
    return optimizer_->param_groups();
  }
  [[nodiscard]] auto& state() const { return optimizer_->state(); }
  [[nodiscard]] torch::optim::OptimizerOptions& defaults() const { return optimizer_->defaults(); }
  void add_param_group(const torch::optim::OptimizerParamGroup& group) { optimizer_->add_param_group(group); }

  /// Groups and state in LibTorch's form, which only an optimizer of the same class and groups can load.
  void save(std::ostream& stream) const;
  void load(std::istream& stream);

  /// For optimizers that are a TrainingMode; without effect on the others.
  void train();
  void eval();

  /// The wrapped one, for what takes LibTorch's type.
  [[nodiscard]] const std::shared_ptr<torch::optim::Optimizer>& optimizer() const noexcept { return optimizer_; }
  [[nodiscard]] const std::shared_ptr<GradientScaler>& scaler() const noexcept { return scaler_; }

 private:
  void record_step() const;

  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  const state::GradientState& gradient_state_;
  std::shared_ptr<accounting::Account> account_;
  std::shared_ptr<GradientScaler> scaler_;
  bool step_was_skipped_ = false;
};

}  // namespace lockstep::optim
