#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/export.h"

namespace lockstep::launch {

enum class Start {
  fork,   ///< quick; needs a process that has one thread (LibTorch starts its threads at its first parallel operation)
  spawn,  ///< runs the program anew, once per rank, up to the call: works from any process, about 1 s per rank
};

enum class Output {
  labelled,   ///< each line of a rank is printed with "[rank 0] " before it
  inherited,  ///< ranks write where this process writes
};

struct DebugLauncherOptions {
  Start start = Start::fork;
  /// How long a rank waits for its peers, at rendezvous and in each collective; none: LOCKSTEP_TIMEOUT, else 60 s.
  /// After a first failure the remaining ranks get this long, and 5 s more, to end by themselves.
  std::optional<std::chrono::milliseconds> timeout;
  Output output = Output::labelled;
};

/// Runs `function` once in each of `num_processes` new processes, which form a world over Gloo on the CPU, and waits
/// for all of them. Inside, `PartialState` and `Accelerator` find their rank; process_index is 0 to num_processes - 1.
///
/// Whatever happens to a rank, the others learn of it and end within the time-out, and nothing that was started is
/// left. With Start::spawn the call must be reached again when the program is run with the same arguments; calls before
/// it return at once there.
///
/// @throws ChildFailed      if a rank failed, naming the one where it began and what each of the others met
/// @throws InvalidArgument  for fewer than one process, and with Start::fork in a process of several threads
/// @clause NB-008, NB-009, NB-010, NB-006
/// @source Accelerate, debug_launcher
LOCKSTEP_API void debug_launcher(const std::function<void()>& function, int num_processes = 2,
                                 const DebugLauncherOptions& options = {});

}  // namespace lockstep::launch
