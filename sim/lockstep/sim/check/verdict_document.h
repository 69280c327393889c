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
  std::vector<std::string> notes;
};

/// @param board     for names of groups, labels and places
/// @param resolve   turns return addresses into lines; may be empty
std::string to_json(const VerdictDocument& document, const Board& board, const ResolvePlace& resolve);
std::string to_json(const RankStanding& standing, const Board& board, const ResolvePlace& resolve);

/// The "cause" of a document that to_json wrote.
std::string cause_of(std::string_view json);

/// "allreduce #4 of group world (float32 [2, 3], sum, of fc1.weight)"
std::string describe(const layout::CallRecord& call, const Board& board, int rank);
/// "train.cpp:41 (step)", or empty
std::string place_of(const layout::CallRecord& call, const layout::RankSeat& seat, const ResolvePlace& resolve);
std::string place_of(const layout::Wait& wait, const layout::RankSeat& seat, const ResolvePlace& resolve);
std::string_view group_name(const Board& board, std::uint32_t group);
/// "ranks 0-2, 4"
std::string list_ranks(const std::vector<int>& ranks);

/// The record of a call of a rank, if it is still there.
std::optional<layout::CallRecord> record_of(const layout::RankSeat& seat, std::uint64_t number);

}  // namespace lockstep::sim
