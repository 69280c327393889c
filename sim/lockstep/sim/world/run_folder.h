#pragma once

#include <filesystem>
#include <string>

#include "lockstep/sim/world/launch.h"

namespace lockstep::sim {

/// "rank0.log"
std::string log_name_of(int rank);

/// Where a run is kept when nobody said where: lockstep-runs/<time>-<pid>, below the current folder.
std::filesystem::path default_run_folder();

/// With all folders above it. @throws FileError
void make_folder(const std::filesystem::path& folder);

/// The same for a run that is to be kept there. What is there of another run would pass for this one's: it is refused.
/// Other files do no harm.
/// @throws FileError, InvalidArgument
void make_run_folder(const std::filesystem::path& folder);

/// Writes what a run has left to look at: verdict.json, the same as a page, report.html, and the logs of the ranks that
/// have none there yet. Makes the folder.
/// @throws FileError
void write_run_folder(const std::filesystem::path& folder, const LaunchResult& result);

}  // namespace lockstep::sim
