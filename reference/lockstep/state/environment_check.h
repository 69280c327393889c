#pragma once

#include <string>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/state/environment.h"

namespace lockstep::state {

/// Text of a warning for each value of a LOCKSTEP_ or rank variable that a rank would refuse: what `lockstep env` can
/// say before a run. It asks the functions by which a rank reads them, and so knows no rule of its own.
LOCKSTEP_API std::vector<std::string> refused_variable_warnings(const Environment& environment);

}  // namespace lockstep::state
