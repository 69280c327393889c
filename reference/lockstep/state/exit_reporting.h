#pragma once

#include <memory>

namespace lockstep::state {

class RankContext;
struct PartialStateData;

/// Sees to it that a process rank that ends by an uncaught exception or by exit() tells the others first. Once per
/// process.
void report_process_exit(std::weak_ptr<RankContext> rank);

/// Closes the rank's connections, and stays while the others still read from a store that this process hosts.
void leave_world(PartialStateData& state) noexcept;

}  // namespace lockstep::state
