#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/sim/world/launch.h"

namespace lockstep::sim {

/// Whether this machine has an NVIDIA device that a rank could use.
bool has_nvidia_device();

/// A TCP port of 127.0.0.1 that nobody uses, outside the range from which the system hands out ports: so nobody is
/// given it between now and the moment when rank 0 opens it.
int free_port();

/// The variables of everything that is started in the job: what `options.environment` has, and the simulation's.
/// What the user has set is kept where it can be: a backend becomes the inner one of the checked backend.
Variables job_variables(const LaunchOptions& options, const std::string& job, bool has_gpu);

/// Adds the place of one rank, as torchrun does.
void set_rank(Variables& variables, const LaunchOptions& options, int rank, int port);

/// Where `import lockstep` finds the package that belongs to this program: beside the program's folder python/ of a
/// build, or share/lockstep/python/ of a prefix.
std::optional<std::filesystem::path> python_folder_of(const std::filesystem::path& program);
void prepend_to_python_path(Variables& variables, const std::filesystem::path& folder);

}  // namespace lockstep::sim
