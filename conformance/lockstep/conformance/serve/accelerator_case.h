#pragma once

#include "lockstep/accelerator/accelerator_options.h"
#include "lockstep/conformance/serve/arguments.h"

namespace lockstep::conformance {

/// The options of the one Accelerator that a case makes: `accelerator` (constructor arguments), `config` (the data
/// configuration) and `accumulation`, of which only the fields that are given are set.
/// @throws Unsupported  for a field that Lockstep does not have
AcceleratorOptions accelerator_options_from(Arguments& arguments);

/// Constructor arguments alone. @param given  the fields of `accelerator`
AcceleratorOptions constructor_options_from(Arguments given);

}  // namespace lockstep::conformance
