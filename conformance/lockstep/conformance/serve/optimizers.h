#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/conformance/serve/arguments.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep::conformance {

/// An optimizer that counts the steps it makes, whoever asks for them.
struct CountedOptimizer {
  std::shared_ptr<torch::optim::Optimizer> optimizer;
  std::shared_ptr<std::int64_t> num_steps;
};

/// Reads kind and options of an optimizer; the framework's defaults, but no weight decay.
/// @throws Unsupported  for a kind that is unknown
CountedOptimizer optimizer_from(Arguments& arguments, std::vector<at::Tensor> parameters);

/// Reads kind and options of a schedule.
/// @throws Unsupported  for a kind that is unknown
std::shared_ptr<optim::Scheduler> scheduler_from(Arguments& arguments,
                                                 std::shared_ptr<torch::optim::Optimizer> optimizer);

}  // namespace lockstep::conformance
