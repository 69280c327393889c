#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::sim {

/// A verdict document (docs/reference/verdict.md).
using VerdictJson = nlohmann::ordered_json;

/// How a rank ended, as its parent knows it.
struct RankEnd {
  int exit_code = 0;  ///< valid unless `signal` is set
  int signal = 0;

  [[nodiscard]] bool is_well() const { return signal == 0 && exit_code == 0; }
};

/// "ended with exit code 3", "was ended by signal 9 (Killed)"
std::string to_text(const RankEnd& end);

// The verdicts that only a launcher can reach. `ranks` says where each rank stands, as elements of a document's
// "ranks".

VerdictJson ok_verdict(const std::string& cause);
/// @param rank     none if the command itself failed
/// @param message  what the rank said of itself; may be empty
VerdictJson rank_failed_verdict(std::optional<int> rank, const RankEnd& end, const std::string& message,
                                VerdictJson ranks);
/// A run that passed the limit of the whole. If all ranks but one are blocked, the hint names that one.
VerdictJson straggler_verdict(std::chrono::milliseconds limit, VerdictJson ranks);
/// @param is_python  how a program takes part depends on it
VerdictJson unchecked_verdict(VerdictJson ranks, bool is_python);
/// @param left  what was found and ended: processes, shared memory
VerdictJson left_behind_verdict(const std::vector<std::string>& left, VerdictJson ranks);
VerdictJson interrupted_verdict(int signal, VerdictJson ranks);
/// @param rank  whose debugger the user has quit before the rank made a group
VerdictJson debugger_left_verdict(int rank, VerdictJson ranks);

/// What the program returns for a verdict; see base/exit_code.h.
int exit_code_of(const VerdictJson& verdict);

/// The document's element for a rank; it is added, as `state`, if there is none.
VerdictJson& rank_in(VerdictJson& verdict, int rank, const std::string& state);

}  // namespace lockstep::sim
