#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/sim/check/channels.h"
#include "lockstep/sim/check/checked_group.h"

namespace lockstep::sim {

/// A call that was just posted and is being compared.
struct Posted {
  CheckedRank* rank;
  int group;       ///< index on the board
  int group_rank;  ///< of the rank that posted
  std::uint64_t sequence;
};

/// Posts the verdict that the members' calls with this number do not match, naming the odd rank where most of the
/// others agree, and throws it. Waits a moment for members that are still on their way.
/// @param members  world ranks in group order
[[noreturn]] void throw_mismatch(const Posted& posted, const std::vector<int>& members);

/// Compares a point-to-point call with the one at the other end of the channel, if that is there.
/// @throws VerdictReached  when dtype or number of elements differ
void compare_ends(const Posted& posted, const ChannelId& channel, const std::vector<int>& members,
                  const layout::CallRecord& call);

/// Whether two calls say what travels, or from where they come, and not the same.
constexpr bool known_and_differ(std::uint64_t a, std::uint64_t b) { return a != 0 && b != 0 && a != b; }

/// Whether the split sizes of an all-to-all that this rank and a member gave each other disagree.
bool splits_differ(const Posted& posted, const Call& call, const layout::RankSeat& theirs, int member,
                   std::uint64_t number);

}  // namespace lockstep::sim
