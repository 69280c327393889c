#pragma once

#include <cstdint>

#include "lockstep/base/export.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep::optim {

// Factors for a LambdaLr: a linear rise from 0 to 1 in `num_warmup_steps`, and what follows it. At position 1 of 4
// warm-up steps the factor is 0.25.

struct WarmupSteps {
  std::int64_t num_warmup_steps = 0;
  std::int64_t num_training_steps = 0;  ///< warm-up included
};

/// Stays at 1. @source Transformers, get_constant_schedule_with_warmup
LOCKSTEP_API LrLambda constant_with_warmup(std::int64_t num_warmup_steps);
/// Falls in equal steps to 0 at `num_training_steps`. @source Transformers, get_linear_schedule_with_warmup
LOCKSTEP_API LrLambda linear_with_warmup(const WarmupSteps& steps);
/// Falls along `num_cycles` periods of a cosine; the default, half a period, ends at 0.
/// @source Transformers, get_cosine_schedule_with_warmup
LOCKSTEP_API LrLambda cosine_with_warmup(const WarmupSteps& steps, double num_cycles = 0.5);

}  // namespace lockstep::optim
