#include "lockstep/state/environment_check.h"

#include <gtest/gtest.h>

namespace lockstep::state {
namespace {

using Warnings = std::vector<std::string>;

TEST(EnvironmentCheck, HasNothingToSayOfWhatARankTakes) {
  EXPECT_EQ(refused_variable_warnings({}), Warnings());
  EXPECT_EQ(refused_variable_warnings({{"RANK", "1"},
                                       {"WORLD_SIZE", "2"},
                                       {"LOCAL_WORLD_SIZE", "2"},
                                       {"LOCAL_RANK", "-1"},
                                       {"LOCKSTEP_BACKEND", "checked:gloo"},
                                       {"LOCKSTEP_LOG_LEVEL", "Error"},
                                       {"LOCKSTEP_SIM", "TRUE"},
                                       {"LOCKSTEP_TIMEOUT", "0.5"},
                                       {"LOCKSTEP_TRACE_DIR", "/"}}),
            Warnings());
}

TEST(EnvironmentCheck, NamesEachValueThatARankWouldRefuseOnce) {
  EXPECT_EQ(
      refused_variable_warnings({{"LOCKSTEP_LOG_LEVEL", "loud"},
                                 {"LOCKSTEP_TIMEOUT", "-1"},
                                 {"LOCKSTEP_TRACE_DIR", "/no/such/folder"},
                                 {"LOCKSTEP_SIM", "perhaps"},
                                 {"RANK", "one"},
                                 {"WORLD_SIZE", "two"}}),
      (Warnings{"environment variable LOCKSTEP_LOG_LEVEL: expected debug, info, warning, error or off, got 'loud'",
                "environment variable LOCKSTEP_TIMEOUT: expected a positive number of seconds, got '-1'",
                "environment variable LOCKSTEP_TRACE_DIR: expected an existing folder, got '/no/such/folder'",
                "environment variable LOCKSTEP_SIM: expected 1 or 0, true or false, yes or no, on or off, got "
                "'perhaps'",
                "environment variable RANK: expected a whole number, got 'one'",
                "environment variable WORLD_SIZE: expected a whole number, got 'two'"}));
}

TEST(EnvironmentCheck, NamesVariablesThatDoNotFitTogether) {
  const auto warnings = refused_variable_warnings({{"RANK", "1"}, {"LOCKSTEP_BACKEND", "glooo"}});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].find("backend: expected one of gloo"), 0U) << warnings[0];
  const auto alone = refused_variable_warnings({{"RANK", "1"}});
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_NE(alone[0].find("Set WORLD_SIZE"), std::string::npos) << alone[0];
}

}  // namespace
}  // namespace lockstep::state
