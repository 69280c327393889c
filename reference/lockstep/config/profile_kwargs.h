#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "lockstep/config/field.h"

namespace lockstep {
class Profiler;
}

namespace lockstep::config {

/// Which steps are recorded: after `skip_first` steps, cycles of `wait` steps without, `warmup` steps whose record is
/// thrown away, and `active` steps.
///
/// @clause KW-018
/// @source PyTorch, torch.profiler.schedule
struct ProfileSchedule {
  std::optional<std::int64_t> wait, warmup, active;  ///< all three have to be given
  std::int64_t repeat = 0;                           ///< cycles; 0: without end
  std::int64_t skip_first = 0;

  bool operator==(const ProfileSchedule&) const = default;
};

/// What is recorded while a profiler lives, and where it goes.
///
/// @clause KW-016..020
/// @source Accelerate, ProfileKwargs
struct ProfileKwargs {
  std::optional<std::vector<std::string>> activities;  ///< "cpu", "cuda"; none: all that are there
  std::optional<ProfileSchedule> schedule_option;      ///< none: every step is recorded
  std::function<void(Profiler&)> on_trace_ready;       ///< after each cycle, and at the end if it is being recorded
  bool record_shapes = false;                          ///< of operators' inputs
  bool profile_memory = false;                         ///< allocations and frees
  bool with_stack = false;                             ///< source lines of TorchScript; C++ has none to tell
  bool with_flops = false;    ///< estimated, of some operators, in their argument `Flops`; records shapes as well
  bool with_modules = false;  ///< the modules of TorchScript around an operator
  std::optional<std::string> output_trace_dir;  ///< for `profile_<rank>.json`, the last trace; none: no file

  /// Callables cannot be compared: two are equal when both are empty.
  bool operator==(const ProfileKwargs& other) const {
    return !on_trace_ready && !other.on_trace_ready && activities == other.activities &&
           schedule_option == other.schedule_option && record_shapes == other.record_shapes &&
           profile_memory == other.profile_memory && with_stack == other.with_stack && with_flops == other.with_flops &&
           with_modules == other.with_modules && output_trace_dir == other.output_trace_dir;
  }
};

/// Without on_trace_ready, which is no value.
constexpr auto fields_of(const ProfileKwargs&) {
  using Kwargs = ProfileKwargs;
  return std::tuple{
      Field{"activities", &Kwargs::activities},       Field{"schedule_option", &Kwargs::schedule_option},
      Field{"record_shapes", &Kwargs::record_shapes}, Field{"profile_memory", &Kwargs::profile_memory},
      Field{"with_stack", &Kwargs::with_stack},       Field{"with_flops", &Kwargs::with_flops},
      Field{"with_modules", &Kwargs::with_modules},   Field{"output_trace_dir", &Kwargs::output_trace_dir}};
}

}  // namespace lockstep::config
