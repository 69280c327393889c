#pragma once

#include <optional>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::launch {

constexpr auto kOk = "ok";  ///< the kind in the report of a rank that did not fail

/// A rank's last words to its launcher, written into the pipe LOCKSTEP_REPORT_FD: {"kind": ..., "message": ...}.
void write_report(int descriptor, const std::string& kind, const std::string& message);

/// What the rank wrote; none when it ended without a word.
std::optional<RankFailure> parse_report(int rank, const std::string& text);

}  // namespace lockstep::launch
