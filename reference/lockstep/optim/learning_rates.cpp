#include "lockstep/optim/learning_rates.h"

#include <torch/optim/optimizer.h>

#include <algorithm>
#include <map>
#include <mutex>

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

namespace {

// Optimizers may belong to several ranks of a process; each entry is used by the rank that owns its optimizer.
class InitialRates {
 public:
  std::vector<double> of(const std::shared_ptr<torch::optim::Optimizer>& optimizer) {
    const std::lock_guard lock(mutex_);
    auto& rates = entry_of(optimizer);
    const auto present = learning_rates(*optimizer);
    for (auto i = rates.size(); i < present.size(); ++i) rates.push_back(present[i]);
    return rates;
  }
  void set(const std::shared_ptr<torch::optim::Optimizer>& optimizer, std::vector<double> rates) {
    const std::lock_guard lock(mutex_);
    entry_of(optimizer) = std::move(rates);
  }

 private:
  std::vector<double>& entry_of(const std::shared_ptr<torch::optim::Optimizer>& optimizer) {
    std::erase_if(table_, [](const auto& entry) { return entry.first.expired(); });
    return table_[optimizer];
  }

  std::mutex mutex_;
  std::map<std::weak_ptr<const torch::optim::Optimizer>, std::vector<double>, std::owner_less<>> table_;
};

InitialRates& initial_rates() {
  static InitialRates table;
  return table;
}

}  // namespace

std::vector<double> initial_learning_rates(const std::shared_ptr<torch::optim::Optimizer>& optimizer) {
  return initial_rates().of(optimizer);
}

void set_initial_learning_rates(const std::shared_ptr<torch::optim::Optimizer>& optimizer, std::vector<double> rates) {
  initial_rates().set(optimizer, std::move(rates));
}

}  // namespace lockstep::optim
