#pragma once

namespace lockstep::state {

/// Cores that this process may run on; two threads of one core count once. At least 1.
int num_physical_cores();

}  // namespace lockstep::state
