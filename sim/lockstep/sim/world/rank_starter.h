#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "lockstep/launch/descriptor.h"
#include "lockstep/sim/world/launch.h"

namespace lockstep::sim {

/// Where a rank writes; none: where we write.
struct RankStreams {
  launch::Descriptor output;
  launch::Descriptor errors;
};

/// All that it takes to start one rank.
struct RankStart {
  std::string program;  ///< the file of `argv`
  std::vector<std::string> argv;
  std::function<int(const Variables&)> body;  ///< instead of the program
  Variables variables;
  RankStreams streams;
  bool stdout_to_stderr = false;   ///< when the streams are inherited
  bool has_input = false;          ///< our stdin; otherwise it reads nothing
  bool has_terminal = false;       ///< its group is the one in front
  sigset_t signal_mask{};          ///< what was blocked before we blocked anything
  std::vector<int> not_for_ranks;  ///< our descriptors, for a body, which no exec closes them for
};

struct StartedRank {
  pid_t pid = 0;
  launch::Descriptor report;  ///< reads what the rank says of itself at its end
};

// Kinds in a rank's report that say that nothing was run. The run ends with the message, which is told once.
constexpr auto kCannotStart = "cannot start";  ///< its program did not start
constexpr auto kRefused = "refused";           ///< its program has not got what it was asked to run

/// Starts it as leader of a process group of its own, which dies with this process. LOCKSTEP_REPORT_FD is added.
/// @throws RuntimeError  when the system has no process or no descriptor left
StartedRank start_rank(RankStart start);

}  // namespace lockstep::sim
