#pragma once

#include <string>

#include "lockstep/base/export.h"

namespace lockstep::comm {

/// Refuses a misspelt name before anybody waits for a group: what is neither the name of a backend, nor
/// "checked:INNER" with such a name, nor the path of a plug-in.
/// @throws InvalidArgument  listing the names
LOCKSTEP_API void check_backend_name(const std::string& name);

}  // namespace lockstep::comm
