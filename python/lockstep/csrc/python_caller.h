#pragma once

#include <cstdint>

namespace lockstep::python {

/// Optimizer steps that this process has completed, as far as is known; calls are stamped with it.
void set_step(std::int64_t step);
std::int64_t step();

/// Whether the calling thread is inside a backward pass.
bool is_in_backward();

}  // namespace lockstep::python
