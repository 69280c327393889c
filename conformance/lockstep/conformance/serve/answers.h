#pragma once

#include <exception>
#include <functional>
#include <string>

#include "lockstep/conformance/serve/arguments.h"

namespace lockstep::conformance {

/// The protocol's word for an exception: the kind of the spec, the nearest that there is, or "Error".
std::string kind_word(const std::exception& error);

/// What `part` gives, or `{"error": KIND}` where that part fails but the operation goes on. Unsupported passes.
Json attempt(const std::function<Json()>& part);

/// The answer to request `id`: what `work` gives, its error, or that it is unsupported.
Json answer(const Json& id, const std::function<Json()>& work);

}  // namespace lockstep::conformance
