#pragma once

#include <memory>
#include <vector>

#include "lockstep/base/export.h"

namespace torch::optim {
class Optimizer;
}

namespace lockstep::optim {

/// The learning rate of each parameter group.
/// @throws c10::Error  for an optimizer of the user's whose options have no learning rate
LOCKSTEP_API std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer);

/// @param rates  one per parameter group; groups beyond them, added later, keep theirs
LOCKSTEP_API void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates);

/// The rates from before any schedule was made for the optimizer: what a schedule that is made later starts from too,
/// although an earlier one has changed the rates. Groups that have none yet get their present rate.
///
/// PyTorch keeps them in the parameter groups, as `initial_lr`; LibTorch's groups have no place for them, so they
/// stand in a table beside the optimizers, for as long as those live.
LOCKSTEP_API std::vector<double> initial_learning_rates(const std::shared_ptr<torch::optim::Optimizer>& optimizer);

/// For schedules that bring rates of their own.
LOCKSTEP_API void set_initial_learning_rates(const std::shared_ptr<torch::optim::Optimizer>& optimizer,
                                             std::vector<double> rates);

}  // namespace lockstep::optim
