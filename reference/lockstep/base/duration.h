#pragma once

#include <chrono>
#include <string>

#include "lockstep/base/export.h"

namespace lockstep {

/// For messages: 1500 ms are 1.5.
constexpr double seconds_of(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }

/// @throws InvalidArgument  for a time-out that is not positive; `where` says who got it
LOCKSTEP_API void require_positive(const std::string& where, std::chrono::milliseconds timeout);

}  // namespace lockstep
