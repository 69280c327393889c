#include "lockstep/sim/report/verdict.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "lockstep/sim/report/verdicts_test_support.h"

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
    "replay": "lockstep sim replay x", "notes": ["different call sites"]})");
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
}

TEST(ReportVerdict, ComesBackAsItWasWritten) {
  auto odd = rank_failed_verdict();
  odd.ranks[0].place =
      Place{.file = "", .line = 0, .function = "f", .module = "libx.so", .offset = 0x1234, .remark = "gone"};
  odd.ranks[0].waits_at = place_at(50, "wait");
  odd.ranks[0].key = "store/key";
  odd.ranks[0].tag = 5;
  odd.ranks[0].tensors = "float32 [2]";
  odd.ranks[1].signal = 9;
  odd.ranks[1].report = "ValueError: x";
  odd.seed = 18446744073709551615U;
  odd.left = {"process 7"};
  for (const auto& verdict : {deadlock_verdict(), mismatch_verdict(), odd, straggler_verdict(), unchecked_verdict(),
                              interrupted_verdict(), Verdict()}) {
    EXPECT_EQ(parse_verdict(to_json(verdict)), verdict) << to_json(verdict);
    for (const auto& standing : verdict.ranks) EXPECT_EQ(parse_standing(to_json(standing)), standing);
  }
  EXPECT_EQ(to_json(Verdict()).rfind(R"({"v":1,"verdict":"ok")", 0), 0U);
}

TEST(ReportVerdict, LeavesOutWhatItDoesNotKnow) {
  const auto verdict = parse_verdict(R"({"verdict": "ok", "colour": "red", "hint": null, "ranks":
    [{"rank": 1, "state": "ended", "mood": 3}]})");
  EXPECT_EQ(to_json(verdict), R"({"v":1,"verdict":"ok","cause":"","ranks":[{"rank":1,"state":"ended"}],"edges":[]})");
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

// What a user's program prints need not be UTF-8.
TEST(ReportVerdict, WritesAnyBytes) {
  auto verdict = unchecked_verdict();
  verdict.cause = "caf\xe9";
  EXPECT_EQ(parse_verdict(to_json(verdict)).cause, "caf\xEF\xBF\xBD");
}

}  // namespace
}  // namespace lockstep::sim::report
