#pragma once

#include <cstdint>

#include "lockstep/base/export.h"
#include "lockstep/config/profile_kwargs.h"

namespace lockstep {

/// What a profiler does in a step.
/// @source PyTorch, torch.profiler.ProfilerAction
enum class ProfilerAction { none, warmup, record, record_and_save };

/// @throws TypeError       without wait, warmup or active
/// @throws AssertionError  for negative numbers, and for no active step
LOCKSTEP_API void require_valid(const config::ProfileSchedule& schedule);

/// The action in a step, counted from 0.
///
/// wait 1, warmup 1, active 2, repeat 1, skip_first 1: none, none, warmup, record, record_and_save, none, none, ...
///
/// @clause KW-018
LOCKSTEP_API ProfilerAction action_in(const config::ProfileSchedule& schedule, std::int64_t step);

}  // namespace lockstep
