#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/conformance/serve/arguments.h"
#include "lockstep/state/accelerator_state.h"

namespace lockstep::conformance {

/// Attributes by their names, in the order of the protocol; each is read when it is asked for.
using Attributes = std::vector<std::pair<std::string, std::function<Json()>>>;

/// What these handles see, also after a reset.
/// @param of  "partial", "gradient" or, of an AcceleratorState, "accelerator"
/// @throws Unsupported  for another word
Attributes attributes_of(const std::string& of, const state::PartialState& state);
Attributes attributes_of(const std::string& of, const state::AcceleratorState& state);

/// All of them as one object.
Json read_all(const Attributes& attributes);
/// @throws Unsupported  for a name that is not among them
Json read_one(const Attributes& attributes, const std::string& name);

}  // namespace lockstep::conformance
