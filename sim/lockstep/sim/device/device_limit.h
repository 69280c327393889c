#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/accounting/phase.h"
#include "lockstep/base/export.h"
#include "lockstep/sim/device/memory_report.h"

namespace lockstep::sim {

/// Gives each rank of this process a pretend device of so many bytes for its tensors; none: as much as the machine has.
/// It holds for allocations from now on, and only while tensor memory is counted (tensor_memory.h).
///
/// An allocation that does not fit raises c10::OutOfMemoryError on the thread that asks, as a real device does, and
/// leaves everything as it was: the program may catch it and go on with less.
///
/// @throws InvalidArgument  if it is not above 0
LOCKSTEP_API void set_device_limit(std::optional<std::int64_t> bytes);
LOCKSTEP_API std::optional<std::int64_t> device_limit() noexcept;

/// The same as one number: kUnlimited without a limit.
std::int64_t device_capacity() noexcept;

/// Says how much was asked for, how much there is, what has it, and what helps, in one line.
/// @param memory    of the rank that asked, who is in `phase`
/// @throws c10::OutOfMemoryError  always
[[noreturn]] void throw_out_of_memory(const MemoryReport& memory, accounting::Phase phase, std::int64_t bytes,
                                      std::int64_t capacity);

}  // namespace lockstep::sim
