#pragma once

#include <string>

#include "lockstep/sim/world/launch.h"

namespace lockstep::sim {

/// Whether this machine has an NVIDIA device that a rank could use.
bool has_nvidia_device();

/// A TCP port of 127.0.0.1 that nobody uses, outside the range from which the system hands out ports: so nobody is
/// given it between now and the moment when rank 0 opens it.
int free_port();

/// Names this job, and its shared memory: "sim-<pid>-<start time>", after the job that this process itself belongs to.
std::string new_job_name(const Variables& environment);

/// The variables of everything that is started in the job: what `options.environment` has, and the simulation's.
/// What the user has set is kept where it can be: a backend becomes the inner one of the checked backend.
Variables job_variables(const LaunchOptions& options, const std::string& job, bool has_gpu);

/// Adds the place of one rank, as torchrun does.
void set_rank(Variables& variables, int rank, int num_ranks, int port);

}  // namespace lockstep::sim
