#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/sim/rank.h"
#include "lockstep/sim/world/launch.h"

namespace lockstep::sim {

/// Functions by name that a program offers to run on each rank, the standard one first.
using Functions = std::vector<std::pair<std::string, std::function<void(Rank&)>>>;

/// The entry of a program whose ranks are simulated:
///
///     int main(int argc, char** argv) { return lockstep::sim::main(argc, argv, {{"train", train}}); }
///
/// Runs one function on this process's rank, as the environment says which: the one that `lockstep sim --function NAME`
/// names, else the one that the first argument names, else the first one. An exception that leaves it is printed, told
/// to the other ranks, and makes the program end with 1.
/// @return the program's exit code; 2 when there is no such function
LOCKSTEP_API int main(int argc, char** argv, const Functions& functions);

/// Runs `function` on `num_ranks` ranks, each a process of its own on the checked backend, and waits for all of them.
/// For a process that has one thread, as debug_launcher with Start::fork.
/// @param options  of the run; `num_ranks`, `argv` and `body` are set here
/// @return how it went; the verdict is a JSON document (docs/reference/verdict.md)
LOCKSTEP_API LaunchResult launch(int num_ranks, const std::function<void(Rank&)>& function, LaunchOptions options = {});

}  // namespace lockstep::sim
