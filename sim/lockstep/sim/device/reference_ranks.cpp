#include "lockstep/accounting/account.h"
#include "lockstep/sim/device/booked_rank.h"
#include "lockstep/state/rank_context.h"

namespace lockstep::sim {
namespace {

BookedRank booked(const state::RankContext& rank) {
  const auto& account = rank.account();
  return {.owner = account, .rank = account->rank(), .phase = account->phase()};
}

}  // namespace

std::optional<BookedRank> rank_of_caller() noexcept {
  const auto* rank = state::RankContext::find();
  return rank == nullptr ? std::nullopt : std::optional(booked(*rank));
}

BookedRank require_rank_of_caller() { return booked(state::RankContext::current()); }

accounting::Phase phase_of(const void* owner) noexcept {
  return static_cast<const accounting::Account*>(owner)->phase();
}

}  // namespace lockstep::sim
