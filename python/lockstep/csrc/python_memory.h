#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::python {

/// Counts this process's tensor memory from now, and gives it a pretend device of so many bytes, if any are named.
void count_memory(std::optional<std::int64_t> device_bytes);

/// Which rank this process is, for what is said of its memory; 0 until it is known.
void set_memory_rank(int rank);

/// "memory of rank 1: 3.50 MiB live, ..." (sim/device/memory_report.h); empty while it is not counted.
std::string memory_summary();

}  // namespace lockstep::python
