#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lockstep/accounting/phase.h"
#include "lockstep/base/export.h"

namespace lockstep::sim {

/// One phase's part in a rank's tensor memory. Who trains through the Accelerator is in a phase by himself; anything
/// else is Phase::other.
struct PhaseMemory {
  std::int64_t live_bytes = 0;  ///< allocated in this phase and not freed yet
  std::int64_t peak_bytes = 0;  ///< the most that the rank held, from whatever phase, at an allocation or a free in it
  bool operator==(const PhaseMemory&) const = default;
};

/// What one rank's tensors hold and held, in bytes asked for. Exact, whichever threads allocate and free.
struct MemoryReport {
  int rank = 0;
  std::int64_t live_bytes = 0;
  std::int64_t peak_bytes = 0;  ///< the most at once, since the peaks were last reset
  std::int64_t num_allocations = 0;
  std::map<accounting::Phase, PhaseMemory> phases;  ///< those in which something was allocated or freed
};

/// "memory of rank 1: 3.50 MiB live, 60.50 MiB at its peak, 812 allocations; by phase, live and peak: forward 0 bytes,
/// 60.50 MiB; step ..."
LOCKSTEP_API std::string memory_summary(const MemoryReport& report);

}  // namespace lockstep::sim
