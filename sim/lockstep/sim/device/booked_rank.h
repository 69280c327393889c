#pragma once

#include <memory>
#include <optional>

#include "lockstep/accounting/phase.h"

/// Which rank it is that allocates: asked of what the counting is linked into, the reference (reference_ranks.cpp) or
/// the Python extension.
namespace lockstep::sim {

struct BookedRank {
  std::shared_ptr<const void> owner;  ///< lives as long as the rank, and is no other rank's
  int rank = 0;
  accounting::Phase phase = accounting::Phase::other;
};

/// The calling thread's rank; none if it belongs to no rank.
std::optional<BookedRank> rank_of_caller() noexcept;
/// The same where there must be one. @throws NoRankContext
BookedRank require_rank_of_caller();

/// The phase in which a rank is now. @param owner  of a BookedRank
accounting::Phase phase_of(const void* owner) noexcept;

}  // namespace lockstep::sim
