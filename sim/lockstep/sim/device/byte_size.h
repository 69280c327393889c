#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/base/export.h"

// Sizes of memory as people write them.
namespace lockstep::sim {

/// The bytes that "64MiB" says: a whole number and its unit, of B, KB, MB, GB (thousands) and KiB, MiB, GiB (1024s).
/// @throws InvalidArgument  for anything else, no bytes at all, and more than 63 bits hold
LOCKSTEP_API std::int64_t parse_bytes(std::string_view text);

/// "512 bytes", "3.50 MiB", as PyTorch's messages have it.
LOCKSTEP_API std::string format_bytes(std::int64_t bytes);

}  // namespace lockstep::sim
