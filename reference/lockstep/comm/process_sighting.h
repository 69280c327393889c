#pragma once

#include <optional>
#include <string>

#include "lockstep/base/export.h"

namespace lockstep::comm {

/// A process, told apart from a later one with the same number by its start time (clock ticks since boot).
struct ProcessId {
  std::string host;
  int pid = 0;
  unsigned long long start_time = 0;
};

enum class ProcessState { alive, stopped, gone, unknown };

LOCKSTEP_API ProcessId this_process();

/// Of a process of this machine; none when there is no such process.
LOCKSTEP_API std::optional<unsigned long long> start_time_of(int pid);

/// What /proc says about it; unknown for a process of another machine.
LOCKSTEP_API ProcessState state_of(const ProcessId& process);

}  // namespace lockstep::comm
