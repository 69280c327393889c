#pragma once

#include <sys/types.h>

#include <functional>

#include "lockstep/launch/debug_launcher.h"
#include "lockstep/launch/descriptor.h"
#include "lockstep/state/environment.h"

namespace lockstep::launch {

/// A rank that was started, and the ends of its pipes.
struct RankProcess {
  int rank = 0;
  pid_t pid = 0;
  Descriptor report;  ///< reads what the rank says of itself at its end
  Descriptor output;  ///< reads its stdout; none when inherited
  Descriptor errors;  ///< reads its stderr; none when inherited
};

/// What runs in a rank: the function in its rank context, then the report. Never returns.
[[noreturn]] void run_rank(const std::function<void()>& function, const state::Environment& environment, int report);

RankProcess fork_rank(int rank, const std::function<void()>& function, const state::Environment& environment,
                      Output output);
/// Starts this program anew with the same arguments.
RankProcess spawn_rank(int rank, const state::Environment& environment, Output output);

}  // namespace lockstep::launch
