#include "lockstep/state/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/base/error.h"
#include "run_ranks.h"

namespace lockstep::state {
namespace {

// Case I7 of the field's failures: TRUE, True, true and 1 are one word.
TEST(Environment, FlagsAreReadInAnyCase) {
  for (const char* yes : {"1", "y", "YES", "t", "True", "TRUE", "on"}) {
    EXPECT_TRUE(Environment({{"X", yes}}).flag("X")) << yes;
  }
  for (const char* no : {"0", "n", "No", "f", "False", "OFF"}) {
    EXPECT_FALSE(Environment({{"X", no}}).flag("X", /*otherwise=*/true)) << no;
  }
  EXPECT_TRUE(Environment().flag("X", /*otherwise=*/true));
  EXPECT_TRUE(Environment({{"X", ""}}).flag("X", /*otherwise=*/true));  // empty is unset
  EXPECT_THROW(static_cast<void>(Environment({{"X", "maybe"}}).flag("X")), InvalidArgument);
}

TEST(Environment, NumbersAndSecondsNameTheVariableWhenTheyAreNone) {
  EXPECT_EQ(Environment({{"X", "-1"}}).number("X"), -1);
  EXPECT_EQ(Environment().number("X"), std::nullopt);
  EXPECT_EQ(Environment({{"X", "1.5"}}).seconds("X"), std::chrono::milliseconds(1500));
  EXPECT_THROW(static_cast<void>(Environment({{"X", "0"}}).seconds("X")), InvalidArgument);
  try {
    static_cast<void>(Environment({{"WORLD_SIZE", "two"}}).number("WORLD_SIZE"));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "environment variable WORLD_SIZE: expected a whole number, got 'two'");
  }
}

TEST(Environment, LogLevelsAreReadInAnyCase) {
  EXPECT_EQ(Environment({{"X", "WARNING"}}).log_level("X"), log::Level::warning);
  EXPECT_EQ(Environment().log_level("X"), std::nullopt);
  EXPECT_EQ(test::message_of<InvalidArgument>([] {
              static_cast<void>(Environment({{"X", "loud"}}).log_level("X"));
            }),
            "environment variable X: expected debug, info, warning, error or off, got 'loud'");
}

TEST(Environment, AFolderHasToExist) {
  EXPECT_EQ(Environment({{"X", "/"}}).folder("X"), "/");
  EXPECT_EQ(Environment().folder("X"), std::nullopt);
  EXPECT_EQ(test::message_of<FileError>([] {
              static_cast<void>(Environment({{"X", "/dev/null"}}).folder("X"));
            }),
            "environment variable X: expected an existing folder, got '/dev/null'");
}

TEST(Environment, IsACopyOfTheProcessVariables) {
  setenv("LOCKSTEP_TEST_ONLY", "a=b", 1);
  const auto environment = Environment::of_process();
  unsetenv("LOCKSTEP_TEST_ONLY");
  EXPECT_EQ(environment.find("LOCKSTEP_TEST_ONLY"), "a=b");
}

TEST(Environment, WarnsOfAMisspeltVariableWithTheNearestName) {
  const auto warnings =
      unknown_variable_warnings({{"LOCKSTEP_BACKENT", "gloo"}, {"LOCKSTEP_JOB", "1"}, {"OTHER", "x"}});
  ASSERT_EQ(warnings.size(), 1);
  EXPECT_EQ(warnings[0],
            "LOCKSTEP_BACKENT is no variable of Lockstep and has no effect; did you mean LOCKSTEP_BACKEND?");
}

}  // namespace
}  // namespace lockstep::state
