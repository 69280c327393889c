#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/conformance/serve/arguments.h"
#include "lockstep/state/partial_state.h"

namespace lockstep::conformance {

/// Attributes by their names, in the order of the protocol; each is read when it is asked for.
using Attributes = std::vector<std::pair<std::string, std::function<Json()>>>;

/// @param of  "partial", "accelerator" or "gradient"
/// @throws Unsupported  for another word
Attributes attributes_of(const std::string& of, const state::PartialState& state);

/// All of them as one object.
Json read_all(const Attributes& attributes);
/// @throws Unsupported  for a name that is not among them
Json read_one(const Attributes& attributes, const std::string& name);

}  // namespace lockstep::conformance
