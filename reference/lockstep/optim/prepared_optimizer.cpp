#include "lockstep/optim/prepared_optimizer.h"

#include <torch/serialize.h>

#include <istream>
#include <ostream>

#include "lockstep/optim/learning_rates.h"

namespace lockstep::optim {
namespace {

// Somebody watches; that must not end a run whose optimizer has no learning rates to show.
std::vector<double> learning_rates_if_any(const torch::optim::Optimizer& optimizer) {
  try {
    return learning_rates(optimizer);
  } catch (const c10::Error&) {
    return {};
  }
}

}  // namespace

PreparedOptimizer::PreparedOptimizer(std::shared_ptr<torch::optim::Optimizer> optimizer,
                                     const state::GradientState& gradient_state,
                                     std::shared_ptr<accounting::Account> account,
                                     std::shared_ptr<GradientScaler> scaler)
    : optimizer_(std::move(optimizer)),
      gradient_state_(gradient_state),
      account_(account ? std::move(account) : std::make_shared<accounting::Account>(0)),
      scaler_(std::move(scaler)) {}

void PreparedOptimizer::step(const LossClosure& closure) {
  if (!gradient_state_.sync_gradients) return;
  const accounting::PhaseScope phase(*account_, accounting::Phase::step);
  if (scaler_) {
    step_was_skipped_ = !scaler_->step(*optimizer_, closure);
    scaler_->update();
  } else {
    optimizer_->step(closure);
  }
  record_step();
}

void PreparedOptimizer::record_step() const {
  account_->emit([this] {
    return accounting::OptimizerStep{.skipped = step_was_skipped_,
                                     .learning_rates = learning_rates_if_any(*optimizer_)};
  });
  if (!step_was_skipped_) account_->end_step();
}

// Not by way of the optimizer: LibTorch's zero_grad detaches every gradient in place, which those that are views into
// DDP's buckets refuse (DDP-007). Theirs have no history to be detached from.
void PreparedOptimizer::zero_grad(bool set_to_none) {
  if (!gradient_state_.sync_gradients) return;
  for (auto& group : optimizer_->param_groups()) {
    for (auto& parameter : group.params()) {
      auto& gradient = parameter.mutable_grad();
      if (!gradient.defined()) continue;
      if (set_to_none) {
        gradient.reset();
        continue;
      }
      if (gradient.grad_fn()) gradient.detach_();
      gradient.set_requires_grad(false).zero_();
    }
  }
}

void PreparedOptimizer::save(std::ostream& stream) const { torch::save(*optimizer_, stream); }
void PreparedOptimizer::load(std::istream& stream) { torch::load(*optimizer_, stream); }

void PreparedOptimizer::train() {
  if (auto* const mode = dynamic_cast<TrainingMode*>(optimizer_.get())) mode->train();
}
void PreparedOptimizer::eval() {
  if (auto* const mode = dynamic_cast<TrainingMode*>(optimizer_.get())) mode->eval();
}

}  // namespace lockstep::optim
