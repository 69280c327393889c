#pragma once

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

}  // namespace lockstep::optim
