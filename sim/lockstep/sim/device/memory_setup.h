#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lockstep/base/export.h"

namespace lockstep::sim {

/// Sets up tensor memory as LOCKSTEP_SIM_SPEC asks: {"memory": true} has it counted (tensor_memory.h), and
/// {"device_memory_bytes": 67108864} has it counted and limited (device_limit.h). Where the spec has neither, nothing
/// happens. To be called in each rank before its first tensor.
/// @throws InvalidArgument  if a value is not of its type
LOCKSTEP_API void set_up_memory(const nlohmann::json& spec);

}  // namespace lockstep::sim
