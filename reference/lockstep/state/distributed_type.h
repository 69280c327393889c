#pragma once

#include <string_view>

#include "lockstep/base/export.h"

namespace lockstep::state {

/// How this job is distributed, in Accelerate's words (STATE-104).
enum class DistributedType { no, multi_cpu, multi_gpu };

/// "NO", "MULTI_CPU", "MULTI_GPU"
LOCKSTEP_API std::string_view to_word(DistributedType type);

}  // namespace lockstep::state
