#pragma once

#include <string>
#include <vector>

#include "lockstep/sim/report/verdict.h"

/// What the reports say in the same words. All of it is one line, whatever the user's program put into it.
namespace lockstep::sim::report {

/// "rank 3", "ranks 0-2, 4". @param ranks  ascending
std::string list_ranks(const std::vector<int>& ranks);

/// "allreduce #4 of world", "recv #1 from rank 2 of world, tag 5", "store wait for 'key'"; empty if there is no call.
std::string call_text(const RankStanding& standing);

/// call_text of a rank that waits in the call; "after allreduce #4 of world" of one that does not.
std::string standing_text(const RankStanding& standing);

/// "float32 [2, 3], float32 [3]"; empty if there is no tensor.
std::string tensors_text(const RankStanding& standing);

/// "step 3", "step 3, micro-step 1".
std::string step_text(const RankStanding& standing);

/// "train.cpp:41 (step)", and where it waits if that is elsewhere; "backward of step 3" where no place is known.
std::string place_text(const RankStanding& standing);

/// The names that travel, the first three and how many more.
std::string label_text(const RankStanding& standing);

/// "RuntimeError: out of patience, at train.cpp:12 (train)", "ended by signal 9 (Killed)", "exit code 3"; empty if
/// nothing says that it failed.
std::string failure_text(const RankStanding& standing);

/// How long the ranks had stood still, where it began, the seed: one sentence each.
std::vector<std::string> facts(const Verdict& verdict);

/// The command line as a shell takes it, the program without its folder: "lockstep sim -n 3 -- ./train 'a b'".
std::string command_text(const Verdict& verdict);

/// What to do where places are only modules and offsets; empty if all have lines.
std::string line_tables_text(const Verdict& verdict);

/// The text on one line, without what a terminal would take for a command.
std::string one_line(const std::string& text);

/// Ranks that stand in the same place.
struct RankGroup {
  std::vector<int> ranks;
  const RankStanding* standing = nullptr;  ///< of the first of them; lives as long as the verdict
};

/// The ranks by where they stand; ranks that say the same come together, at the place of the first of them.
std::vector<RankGroup> group_alike(const Verdict& verdict);

}  // namespace lockstep::sim::report
