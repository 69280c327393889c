#include "lockstep/accelerator/accumulation_window.h"

#include <utility>

namespace lockstep {
namespace {

bool is_mean(const state::GradientState& gradients) {
  return gradients.accumulation_rule == config::AccumulationRule::window_mean;
}

}  // namespace

double AccumulationWindow::begin_micro_batch(state::GradientState& gradients) {
  const bool ends_pass = gradients.sync_with_dataloader && gradients.end_of_dataloader();
  count_ = ends_pass ? 0 : count_ + 1;
  gradients.sync_gradients = ends_pass || count_ % gradients.num_steps == 0;

  const bool has_gathered = std::exchange(is_open_, !gradients.sync_gradients);
  size_ = has_gathered ? size_ + 1 : 1;
  const auto before = std::exchange(divisor_, gradients.sync_gradients ? size_ : gradients.num_steps);
  return has_gathered && is_mean(gradients) ? static_cast<double>(before) / static_cast<double>(divisor_) : 1.0;
}

std::int64_t AccumulationWindow::divisor(const state::GradientState& gradients) const {
  return is_mean(gradients) && divisor_ != 0 ? divisor_ : gradients.num_steps;
}

}  // namespace lockstep
