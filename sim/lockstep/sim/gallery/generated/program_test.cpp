#include "lockstep/sim/gallery/generated/program.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "lockstep/sim/gallery/generated/case.h"

namespace lockstep::sim::generated {
namespace {

TEST(GeneratedProgram, ComesBackFromJson) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto program = make_case(seed).program;
    ASSERT_EQ(parse_program(to_json(program)), program) << "seed " << seed;
  }
}

TEST(GeneratedProgram, IsWrittenWithoutWhatIsUsual) {
  const Program program{.world_size = 2,
                        .groups = {{.name = "world", .ranks = {0, 1}}},
                        .ranks = {{{.line = 3, .action = Action::barrier}},
                                  {{.line = 4, .action = Action::send, .shape = {12}, .peer = 0, .tag = 7}}}};
  EXPECT_EQ(to_json(program), R"({"v":1,"world_size":2,"groups":[{"name":"world","ranks":[0,1]}],"ranks":[)"
                              R"([{"line":3,"action":"barrier"}],)"
                              R"([{"line":4,"action":"send","dtype":"float32","shape":[12],"peer":0,"tag":7}]]})");
}

// Why parsing the text fails, or "".
std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(parse_program(text));
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

std::string with_calls(const std::string& calls) {
  return R"({"world_size": 2, "groups": [{"name": "world", "ranks": [0, 1]}, {"name": "one", "ranks": [1]}], "ranks": [[)" +
         calls + "], []]}";
}

TEST(GeneratedProgram, WhatIsNoneIsRefusedWithTheReason) {
  EXPECT_EQ(refusal_of(with_calls(R"({"line": 0, "action": "barrier"})")), "");
  EXPECT_NE(refusal_of("{").find("a program of version 1"), std::string::npos);
  EXPECT_NE(refusal_of(with_calls(R"({"line": 0, "action": "dance"})")).find("got 'dance'"), std::string::npos);
  EXPECT_NE(refusal_of(with_calls(R"({"line": 250, "action": "barrier"})")).find("a line below 250"),
            std::string::npos);
  EXPECT_NE(refusal_of(with_calls(R"({"line": 0, "action": "barrier", "group": 2})")).find("a group of the program"),
            std::string::npos);
  EXPECT_NE(refusal_of(with_calls(R"({"line": 0, "action": "barrier", "group": 1})")).find("members alone"),
            std::string::npos);
  EXPECT_NE(refusal_of(with_calls(R"({"line": 0, "action": "send", "peer": 2})")).find("a peer within the group"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::sim::generated
