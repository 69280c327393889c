#pragma once

#include <optional>
#include <string_view>

#include "lockstep/sim/backend/caller.h"
#include "lockstep/sim/backend/process_ranks.h"

namespace lockstep::sim {

/// While it lives, the calling thread waits for a key of the store. Where the thread belongs to no watched rank it does
/// nothing.
class KeyWait {
 public:
  explicit KeyWait(std::string_view key) : rank_(rank_of_thread()) {
    if (!rank_) return;
    Frames frames;
    scope_.emplace(rank_->rank, rank_->rank->store_wait(key), site_of_wait(frames));
  }

  [[nodiscard]] const std::shared_ptr<WatchedRank>& rank() const noexcept { return rank_; }

 private:
  std::shared_ptr<WatchedRank> rank_;
  std::optional<WaitScope> scope_;
};

}  // namespace lockstep::sim
