#pragma once

#include "lockstep/base/export.h"

namespace lockstep::state {

/// Cores that this process may run on; two threads of one core count once. At least 1.
LOCKSTEP_API int num_physical_cores();

}  // namespace lockstep::state
