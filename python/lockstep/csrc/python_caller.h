#pragma once

#include <cstdint>

#include "lockstep/accounting/phase.h"

namespace lockstep::python {

/// Optimizer steps that this process has completed, as far as is known; calls are stamped with it.
void set_step(std::int64_t step);
std::int64_t step();

/// Whether the calling thread is inside a backward pass; what else it may be about is not known here.
accounting::Phase current_phase();

}  // namespace lockstep::python
