#include "lockstep/optim/learning_rates.h"

#include <torch/optim/optimizer.h>

#include <algorithm>

namespace lockstep::optim {

std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates) {
  auto& groups = optimizer.param_groups();
  for (std::size_t i = 0; i < std::min(rates.size(), groups.size()); ++i) groups[i].options().set_lr(rates[i]);
}

}  // namespace lockstep::optim
