#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/sim/place/place.h"

/// What a run came to, and its reports. They are made from the verdict document alone.
namespace lockstep::sim::report {

/// The document's "verdict".
enum class Outcome {
  ok,
  deadlock,
  mismatch,
  rank_failed,
  divergence,
  ledger,
  straggler,
  unchecked,
  left_behind,
  interrupted,
};
std::string_view to_word(Outcome outcome);

/// A rank's "state".
enum class RankState {
  blocked,
  running,
  paused,  ///< by the user's debugger
  ended,
  failed,
};
std::string_view to_word(RankState state);

/// Where a rank stands: an element of the document's "ranks". What is empty is not known, or does not apply.
struct RankStanding {
  int rank = 0;
  RankState state = RankState::running;

  // The call that it waits in, or the last one that it made.
  std::string op;  ///< c10d's name in snake case, "store wait" or "rendezvous"
  std::optional<std::int64_t> seq;
  std::string group;
  std::string dtype;
  std::vector<std::vector<std::int64_t>> shapes;  ///< of each tensor
  std::string tensors;                            ///< "float32 [2, 3]", in place of dtype and shapes
  std::string reduce_op;
  std::optional<int> peer;  ///< global rank of the partner, or of the root
  std::optional<int> tag;
  std::string key;  ///< of a store wait

  std::optional<std::int64_t> step;
  std::optional<std::int64_t> micro_step;
  std::string phase;
  std::vector<std::string> label;  ///< names of the parameters or the bucket that travel
  std::optional<Place> place;      ///< where the call was made
  std::optional<Place> waits_at;   ///< where it is waited for, when that is another place
  std::vector<int> waits_for;

  // Of a rank that ended or failed.
  std::string kind;     ///< the error's, "RuntimeError"
  std::string message;  ///< the error's
  std::string report;   ///< what the rank told its launcher
  std::optional<Place> failed_at;
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::vector<std::string> errors;  ///< the last lines that it wrote to stderr

  bool operator==(const RankStanding&) const = default;
};

/// `from` waits for `to`.
struct Edge {
  int from = 0;
  int to = 0;

  auto operator<=>(const Edge&) const = default;
};

/// The verdict document, version 1.
struct Verdict {
  static constexpr int kVersion = 1;

  Outcome outcome = Outcome::ok;
  std::string cause;
  std::vector<RankStanding> ranks;
  std::optional<int> first;  ///< the rank where it began
  std::vector<Edge> edges;
  std::optional<double> since_stall_s;  ///< how long the ranks had stood still
  std::optional<std::uint64_t> seed;
  std::optional<int> signal;      ///< that interrupted the run
  std::vector<std::string> left;  ///< what was left behind
  std::string hint;
  std::string replay;  ///< command that runs it again
  std::vector<std::string> notes;
  std::vector<std::string> command;  ///< line of the run, word by word; empty where a program started it
};

/// Reads a document. Fields that version 1 does not know are left out; a document without "v" is version 1.
/// @throws std::invalid_argument  for text that is no such document, and for another version
Verdict parse_verdict(std::string_view json);

}  // namespace lockstep::sim::report
