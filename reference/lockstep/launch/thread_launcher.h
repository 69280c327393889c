#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/export.h"
#include "lockstep/base/world.h"

namespace lockstep::launch {

struct ThreadLauncherOptions {
  /// How long a rank waits for its peers; none: LOCKSTEP_TIMEOUT, else 60 s.
  std::optional<std::chrono::milliseconds> timeout;
};

/// Runs `function` once in each of `num_ranks` threads of this process, which form a world over the in-process backend.
/// Each thread is a rank of its own (RankContext): state, gradient state, account, and a generator that is not the
/// process's. Blocks until all have ended.
///
/// Many ranks in milliseconds, the same bits in every run; but ranks share the process, so that one that crashes takes
/// the others with it, and one that never returns cannot be ended.
///
/// @throws ChildFailed  if a rank threw, the first one first; the others' waits end at once
LOCKSTEP_API void thread_launcher(const std::function<void()>& function, int num_ranks,
                                  const ThreadLauncherOptions& options = {});

}  // namespace lockstep::launch
