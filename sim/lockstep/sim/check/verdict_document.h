#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/sim/check/board.h"
#include "lockstep/sim/check/checked_rank.h"

namespace lockstep::sim {

/// How one rank stands, as an element of a verdict's "ranks".
struct RankStanding {
  int rank = 0;
  std::string state;                       ///< blocked, running, paused, ended, failed
  std::optional<layout::CallRecord> call;  ///< the one it waits for, or its last one
  std::optional<layout::Wait> wait;        ///< where it waits
  std::optional<layout::Failure> failure;
  std::vector<int> waits_for;
};

/// The verdict document before it is JSON; its fields are those of docs/reference/verdict.md.
struct VerdictDocument {
  std::string verdict;
  std::string cause;
  std::vector<RankStanding> ranks;
  int first = -1;
  std::vector<std::pair<int, int>> edges;
  double since_stall_s = 0;
  std::string hint;
};

/// With the board's notes. Never too long for the board: what would be loses its edges, then details of ranks, and a
/// note says so.
/// @param board     for names of groups, labels and places
/// @param resolve   turns return addresses into lines; may be empty
std::string to_json(const VerdictDocument& document, const Board& board, const ResolvePlace& resolve);
std::string to_json(const RankStanding& standing, const Board& board, const ResolvePlace& resolve);

/// A document that somebody else wrote; if it is too long for the board, its verdict and cause alone.
std::string fitted_to_board(const std::string& json);

/// The "cause" of a document.
std::string cause_of(std::string_view json);

/// c10d's name of what was called, in snake case
std::string_view operation_of(const layout::CallRecord& call);
/// "allreduce #4 of group world"
std::string call_name(const layout::CallRecord& call, const Board& board);
/// "allreduce #4 of group world (float32 [2, 3], sum, of fc1.weight)"
std::string describe(const layout::CallRecord& call, const Board& board, int rank);
/// "train.cpp:41 (step)", or empty
std::string place_of(const layout::Site& site, const layout::RankSeat& seat, const ResolvePlace& resolve);
/// The same as it follows in a sentence: " at train.cpp:41 (step)", or empty
std::string at_place(const layout::Site& site, const layout::RankSeat& seat, const ResolvePlace& resolve);
std::string_view group_name(const Board& board, std::uint32_t group);
/// "ranks 0-2, 4"
std::string list_ranks(const std::vector<int>& ranks);

/// Ranks that make a call at one place.
struct Callers {
  std::string place;  ///< may be empty
  std::vector<int> ranks;
};
/// "call sites differ: allreduce #3 of group world is called at a.cpp:12 (f) by rank 0 and at a.cpp:15 (f) by rank 1"
std::string describe_sites(const layout::CallRecord& call, const Board& board, const std::vector<Callers>& callers);

}  // namespace lockstep::sim
