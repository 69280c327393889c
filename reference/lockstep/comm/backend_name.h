#pragma once

#include <string>

#include "lockstep/base/export.h"

namespace lockstep::comm {

/// Refuses a misspelt name before anybody waits for a group: what is neither the name of a backend, nor
/// "checked:INNER" with such a name, nor the path of a plug-in.
/// @throws InvalidArgument  listing the names
LOCKSTEP_API void check_backend_name(const std::string& name);

/// "checked" is the checked backend over `standard`: "checked:<standard>". Other names are as they are.
LOCKSTEP_API std::string with_inner(const std::string& name, const std::string& standard);

/// The backend that moves the data: "gloo" of "checked:gloo".
LOCKSTEP_API std::string moving_backend(const std::string& name);

}  // namespace lockstep::comm
