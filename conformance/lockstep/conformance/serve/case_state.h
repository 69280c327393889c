#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/world.h"
#include "lockstep/state/environment.h"
#include "lockstep/state/rank_context.h"

namespace lockstep::conformance {

/// This process's rank for as long as the session lasts: it makes the world once, and lends it to each case.
class SessionRank {
 public:
  /// Finds its place in the process's environment. A world of one is not distributed, whatever variables are set.
  SessionRank();

  /// Builds the process group; blocks until all ranks are there. Waits of collectives end only after a day, so that
  /// who waits is seen to hang. The second call does nothing.
  void meet();

  [[nodiscard]] World world() const noexcept { return world_; }
  [[nodiscard]] const state::Environment& environment() const noexcept { return environment_; }
  /// A rank as in a new process, whose state is empty, over the group that stands.
  [[nodiscard]] std::shared_ptr<state::RankContext> new_rank(const state::Environment& environment) const;

 private:
  state::Environment environment_;
  World world_;
  std::shared_ptr<state::RankContext> rank_;
};

/// What a case finds: everything as in a new process. It communicates with nobody.
struct CaseStart {
  std::vector<std::pair<std::string, std::string>> environment;  ///< on top of the process's own
  std::int64_t seed = 0;
};

/// While it lives, a case runs: the rank is a new one, and the process's items are as at its start, generators seeded.
class CaseScope {
 public:
  CaseScope(const SessionRank& session, const CaseStart& start);

 private:
  state::StateScope scope_;
};

/// Seeds what draws when no generator is named, and puts back all else that LibTorch has once per process or thread.
void reset_process(std::int64_t seed);

}  // namespace lockstep::conformance
