#pragma once

#include "lockstep/accelerator/accelerator_options.h"
#include "lockstep/precision/policy.h"
#include "lockstep/random/synchronize.h"
#include "lockstep/state/accelerator_state.h"
#include "lockstep/state/environment.h"

namespace lockstep {

// What an Accelerator's options come to, with their contradictions refused.

/// @throws InvalidArgument, Missing  for what ddp_kwargs_of and precision_of refuse, and for two timeouts that differ
/// @throws NotSupported  for an init_method other than "env://", trackers, a compiler, checkpoints, and an engine that
///                       the environment asks for, naming it
/// @clause KW-013..015, KW-031
state::AcceleratorStateOptions state_options_of(const AcceleratorOptions& options);

/// @throws InvalidArgument  for two handlers of one kind, and for ddp_kwargs that differ from the handler for DDP
/// @clause AMP-009, KW-002
config::DistributedDataParallelKwargs ddp_kwargs_of(const AcceleratorOptions& options);

/// @throws InvalidArgument  as ddp_kwargs_of
config::ProfileKwargs profile_kwargs_of(const AcceleratorOptions& options);

/// The policy of the mode that is asked for: by the option, else by the rank's state, else by
/// ACCELERATE_MIXED_PRECISION.
/// @throws InvalidArgument  for an unknown mode, or an fp8 recipe without the mode fp8
/// @throws Missing          for an fp8 backend that is not installed
/// @clause STATE-113, AMP-011, KW-024
precision::Policy::Options precision_of(const AcceleratorOptions& options, c10::DeviceType device = c10::kCPU);

/// @throws InvalidArgument  for two logging directories that differ
/// @clause KW-028..030
config::ProjectConfiguration project_configuration_of(const AcceleratorOptions& options);

/// @throws InvalidArgument  for a name that is none (RNG-002)
std::vector<random::RngType> rng_types_of(const AcceleratorOptions& options);

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
