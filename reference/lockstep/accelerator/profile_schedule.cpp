#include "lockstep/accelerator/profile_schedule.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep {

void require_valid(const config::ProfileSchedule& schedule) {
  const auto text = [](const std::optional<std::int64_t>& count) {
    return count ? fmt::format("{}", *count) : std::string("none");
  };
  const auto got = fmt::format("wait {}, warmup {}, active {}, repeat {}, skip_first {}", text(schedule.wait),
                               text(schedule.warmup), text(schedule.active), schedule.repeat, schedule.skip_first);
  if (!schedule.wait || !schedule.warmup || !schedule.active) {
    throw TypeError({.where = "ProfileKwargs(schedule_option)",
                     .expected = "wait, warmup and active",
                     .got = got,
                     .fix = "Give all three; repeat and skip_first may be left out."});
  }
  const bool has_negative =
      *schedule.wait < 0 || *schedule.warmup < 0 || schedule.repeat < 0 || schedule.skip_first < 0;
  if (has_negative || *schedule.active < 1) {
    throw AssertionError({.where = "ProfileKwargs(schedule_option)",
                          .expected = "no negative numbers, and at least one active step",
                          .got = got,
                          .fix = "Leave schedule_option out to record every step."});
  }
}

ProfilerAction action_in(const config::ProfileSchedule& schedule, std::int64_t step) {
  if (step < schedule.skip_first) return ProfilerAction::none;
  const auto wait = *schedule.wait, warmup = *schedule.warmup;
  const auto length = wait + warmup + *schedule.active;
  const auto cycle = (step - schedule.skip_first) / length, place = (step - schedule.skip_first) % length;
  if (schedule.repeat > 0 && cycle >= schedule.repeat) return ProfilerAction::none;
  if (place < wait) return ProfilerAction::none;
  if (place < wait + warmup) return ProfilerAction::warmup;
  return place + 1 < length ? ProfilerAction::record : ProfilerAction::record_and_save;
}

}  // namespace lockstep
