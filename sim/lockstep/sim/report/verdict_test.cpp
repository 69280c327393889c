#include "lockstep/sim/report/verdict.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace lockstep::sim::report {
namespace {

std::string error_of(const std::string& json) {
  try {
    (void)parse_verdict(json);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ReportVerdict, ReadsTheDocumentOfTheContract) {
  const auto verdict = parse_verdict(R"({"v": 1, "verdict": "deadlock", "cause": "rank 1 waits",
    "ranks": [{"rank": 0, "state": "blocked", "op": "allreduce", "seq": 4, "group": "world", "step": 3, "micro_step": 0,
               "phase": "backward", "label": ["fc1.weight", "fc1.bias"],
               "place": {"file": "train.py", "line": 41, "function": "step"}, "waits_for": [1]}],
    "first": 0, "edges": [[0, 1], [1, 0]], "since_stall_s": 0.21, "seed": 7, "hint": "...",
    "replay": "lockstep sim replay x", "notes": ["different call sites"],
    "command": ["lockstep", "sim", "--", "./train", "a b"]})");
  EXPECT_EQ(verdict.outcome, Outcome::deadlock);
  ASSERT_EQ(verdict.ranks.size(), 1U);
  const auto& rank = verdict.ranks[0];
  EXPECT_EQ(rank.state, RankState::blocked);
  EXPECT_EQ(rank.op, "allreduce");
  EXPECT_EQ(rank.seq, 4);
  EXPECT_EQ(rank.micro_step, 0);
  EXPECT_EQ(rank.label, (std::vector<std::string>{"fc1.weight", "fc1.bias"}));
  EXPECT_EQ(to_text(*rank.place), "train.py:41 (step)");
  EXPECT_EQ(rank.waits_for, std::vector<int>{1});
  EXPECT_EQ(verdict.first, 0);
  EXPECT_EQ(verdict.edges, (std::vector<Edge>{{0, 1}, {1, 0}}));
  EXPECT_DOUBLE_EQ(verdict.since_stall_s.value(), 0.21);
  EXPECT_EQ(verdict.seed, 7U);
  EXPECT_EQ(verdict.notes.size(), 1U);
  EXPECT_EQ(verdict.command, (std::vector<std::string>{"lockstep", "sim", "--", "./train", "a b"}));
}

TEST(ReportVerdict, ReadsWhatOnlySomeVerdictsHave) {
  const auto verdict = parse_verdict(R"({"v": 1, "verdict": "left_behind", "signal": 2, "left": ["process 7"],
    "seed": 18446744073709551615, "ranks": [
      {"rank": 0, "state": "blocked", "op": "recv", "peer": 1, "tag": 5, "tensors": "float32 [2]", "reduce_op": "sum",
       "dtype": "float32", "shapes": [[2]], "place": {"module": "libx.so", "offset": 4660, "remark": "gone"},
       "waits_at": {"file": "a.cpp", "line": 50, "function": "wait"}},
      {"rank": 1, "state": "paused", "op": "store wait", "key": "store/key"},
      {"rank": 2, "state": "failed", "kind": "ValueError", "message": "x", "report": "ValueError: x", "exit_code": 3,
       "signal": 9, "stderr": ["a", "b"], "failed_at": {"file": "a.cpp", "line": 7, "function": "f"}}]})");
  EXPECT_EQ(verdict.signal, 2);
  EXPECT_EQ(verdict.left, std::vector<std::string>{"process 7"});
  EXPECT_EQ(verdict.seed, 18446744073709551615U);
  ASSERT_EQ(verdict.ranks.size(), 3U);
  const auto& receives = verdict.ranks[0];
  EXPECT_EQ(receives.peer, 1);
  EXPECT_EQ(receives.tag, 5);
  EXPECT_EQ(receives.tensors, "float32 [2]");
  EXPECT_EQ(receives.reduce_op, "sum");
  EXPECT_EQ(receives.dtype, "float32");
  EXPECT_EQ(receives.shapes, (std::vector<std::vector<std::int64_t>>{{2}}));
  EXPECT_EQ(receives.place,
            (Place{.file = "", .line = 0, .function = "", .module = "libx.so", .offset = 0x1234, .remark = "gone"}));
  EXPECT_EQ(to_text(receives.waits_at.value()), "a.cpp:50 (wait)");
  EXPECT_EQ(verdict.ranks[1].key, "store/key");
  const auto& failed = verdict.ranks[2];
  EXPECT_EQ(failed.kind, "ValueError");
  EXPECT_EQ(failed.message, "x");
  EXPECT_EQ(failed.report, "ValueError: x");
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_EQ(failed.signal, 9);
  EXPECT_EQ(failed.errors, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(to_text(failed.failed_at.value()), "a.cpp:7 (f)");
}

TEST(ReportVerdict, LeavesOutWhatItDoesNotKnow) {
  const auto verdict = parse_verdict(R"({"verdict": "ok", "colour": "red", "hint": null, "ranks":
    [{"rank": 1, "state": "ended", "mood": 3}]})");
  EXPECT_EQ(verdict.outcome, Outcome::ok);
  EXPECT_EQ(verdict.hint, "");
  ASSERT_EQ(verdict.ranks.size(), 1U);
  EXPECT_EQ(verdict.ranks[0].state, RankState::ended);
}

TEST(ReportVerdict, RefusesWhatIsNoDocumentOfVersion1) {
  EXPECT_NE(error_of(R"({"v": 2, "verdict": "ok"})").find("expected version 1, got 2"), std::string::npos);
  EXPECT_NE(error_of(R"({"v": 1, "verdict": "fine"})").find("\"fine\""), std::string::npos);
  EXPECT_NE(error_of(R"({"v": 1, "verdict": "ok", "ranks": [{"rank": 0, "state": "asleep"}]})").find("\"asleep\""),
            std::string::npos);
  for (const char* text : {"", "{", "[]", "{}", R"({"verdict": 3})", R"({"verdict": "ok", "first": "zero"})",
                           R"({"verdict": "ok", "edges": [[1]]})", R"({"verdict": "ok", "ranks": [{"rank": 0}]})",
                           R"({"verdict": "ok", "ranks": [7]})"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

}  // namespace
}  // namespace lockstep::sim::report
