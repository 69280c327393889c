#pragma once

#include <string>

#include "lockstep/sim/world/launch.h"

namespace lockstep::sim {

/// Names this job, and its shared memory: "sim-<pid>-<start time>-<process namespace>", after the job that this process
/// itself belongs to.
std::string new_job_name(const Variables& environment);

/// Removes what jobs have left in /dev/shm whose launcher and guardian were killed at one time, so that nobody could.
/// A job is dead when its launcher is, and every rank on its board. Containers may share /dev/shm and not the process
/// numbers by which that is told: jobs of another namespace are left alone.
void remove_shared_memory_of_dead_jobs();

}  // namespace lockstep::sim
