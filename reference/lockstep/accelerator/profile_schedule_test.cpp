#include "lockstep/accelerator/profile_schedule.h"

#include <gtest/gtest.h>

#include <vector>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

using config::ProfileSchedule;
using enum ProfilerAction;

std::vector<ProfilerAction> actions_of(const ProfileSchedule& schedule, std::int64_t num_steps) {
  std::vector<ProfilerAction> actions;
  for (std::int64_t step = 0; step < num_steps; ++step) actions.push_back(action_in(schedule, step));
  return actions;
}

TEST(KW_018, ActionsFollowTheSchedule) {
  EXPECT_EQ(actions_of({.wait = 1, .warmup = 1, .active = 2, .repeat = 1, .skip_first = 1}, 7),
            (std::vector{none, none, warmup, record, record_and_save, none, none}));
  EXPECT_EQ(actions_of({.wait = 0, .warmup = 0, .active = 1}, 3),
            (std::vector{record_and_save, record_and_save, record_and_save}));
}

TEST(KW_018, WithoutRepeatCyclesAreWithoutEnd) {
  EXPECT_EQ(actions_of({.wait = 1, .warmup = 0, .active = 1}, 6),
            (std::vector{none, record_and_save, none, record_and_save, none, record_and_save}));
  EXPECT_EQ(actions_of({.wait = 1, .warmup = 0, .active = 1, .repeat = 2}, 6),
            (std::vector{none, record_and_save, none, record_and_save, none, none}));
}

TEST(KW_018, WaitWarmupAndActiveAreRequired) {
  EXPECT_THROW(require_valid({.warmup = 1, .active = 1}), TypeError);
  EXPECT_THROW(require_valid({.wait = 1, .active = 1}), TypeError);
  EXPECT_THROW(require_valid({.wait = 1, .warmup = 1}), TypeError);
  EXPECT_NO_THROW(require_valid({.wait = 0, .warmup = 0, .active = 1}));
}

TEST(KW_018, NumbersThatMakeNoScheduleAreRefused) {
  EXPECT_THROW(require_valid({.wait = 1, .warmup = 1, .active = 0}), AssertionError);
  EXPECT_THROW(require_valid({.wait = -1, .warmup = 1, .active = 1}), AssertionError);
  EXPECT_THROW(require_valid({.wait = 1, .warmup = 1, .active = 1, .skip_first = -1}), AssertionError);
}

}  // namespace
}  // namespace lockstep
