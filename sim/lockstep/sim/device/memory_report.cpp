#include "lockstep/sim/device/memory_report.h"

#include "lockstep/sim/device/byte_size.h"

namespace lockstep::sim {

std::string memory_summary(const MemoryReport& report) {
  auto text = "memory of rank " + std::to_string(report.rank) + ": " + format_bytes(report.live_bytes) + " live, " +
              format_bytes(report.peak_bytes) + " at its peak, " + std::to_string(report.num_allocations) +
              (report.num_allocations == 1 ? " allocation" : " allocations");
  std::string separator = "; by phase, live and peak: ";
  for (const auto& [phase, memory] : report.phases) {
    text += separator + std::string(accounting::to_word(phase)) + " " + format_bytes(memory.live_bytes) + ", " +
            format_bytes(memory.peak_bytes);
    separator = "; ";
  }
  return text;
}

}  // namespace lockstep::sim
