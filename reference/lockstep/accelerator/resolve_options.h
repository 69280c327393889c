#pragma once

#include "lockstep/accelerator/accelerator_options.h"
#include "lockstep/state/accelerator_state.h"
#include "lockstep/state/environment.h"

namespace lockstep {

// What an Accelerator's options come to, with their contradictions refused.

/// @throws NotSupported  for a mixed precision other than "no"
state::AcceleratorStateOptions state_options_of(const AcceleratorOptions& options);

/// An option of the constructor and the same field of the data configuration are one thing in two places.
/// @throws InvalidArgument  when both are given and differ, naming the option and both values
/// @clause DATA-002, 003
config::DataLoaderConfiguration data_configuration_of(const AcceleratorOptions& options);

/// @throws InvalidArgument  for steps below 1, and when steps and a plugin are given
/// @clause ACC-013
config::GradientAccumulationPlugin accumulation_of(const AcceleratorOptions& options,
                                                   const state::Environment& environment);
int checked_num_steps(int steps);

}  // namespace lockstep
