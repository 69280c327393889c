#include "lockstep/sim/gallery/generated/summary.h"

#include <gtest/gtest.h>

namespace lockstep::sim::generated {
namespace {

std::string verdict(const std::string& word, int first, const std::string& function) {
  return R"({"v": 1, "verdict": ")" + word + R"(", "cause": "", "ranks": [{"rank": 0, "state": "blocked"}, )" +
         R"({"rank": 1, "state": "blocked", "place": {"file": "call_sites.cpp", "line": 62, "function": ")" + function +
         R"("}}], "first": )" + std::to_string(first) + R"(, "edges": []})";
}

const std::string kMismatchAt17 = verdict("mismatch", 1, "lockstep::sim::generated::call_at_017");
const std::string kOk = R"({"v": 1, "verdict": "ok", "cause": "3 ranks ended well", "ranks": [], "edges": []})";

Case case_with(std::set<Outcome> expected) {
  Case one{.seed = 5};
  one.healthy = {.world_size = 2, .groups = {{.name = "world", .ranks = {0, 1}}}, .ranks = {{}, {{.line = 17}}}};
  one.fault = {.kind = FaultKind::drop, .rank = 1};
  one.expected = std::move(expected);
  return one;
}

TEST(GeneratedSummary, ReadsWhatAVerdictTells) {
  const Outcome expected{.verdict = Verdict::mismatch, .rank = 1, .line = 17};
  EXPECT_EQ(outcome_told_by(kMismatchAt17), expected);
  EXPECT_EQ(outcome_told_by(verdict("mismatch", 1, "main"))->line, std::nullopt);
  EXPECT_EQ(outcome_told_by(verdict("mismatch", 0, "call_at_017"))->line, std::nullopt);  // another rank's
  EXPECT_EQ(outcome_told_by(kOk), std::nullopt);
  EXPECT_EQ(outcome_told_by(verdict("straggler", 1, "call_at_017")), std::nullopt);
  EXPECT_EQ(outcome_told_by("{"), std::nullopt);
}

TEST(GeneratedSummary, JudgesVerdictRankAndLine) {
  const auto judged = [](const Outcome& expected) {
    const auto judgement = judge(case_with({expected}), kMismatchAt17, 0.1);
    return std::array{judgement.is_found, judgement.is_rank_right, judgement.is_line_right};
  };
  EXPECT_EQ(judged({.verdict = Verdict::mismatch, .rank = 1, .line = 17}), (std::array{true, true, true}));
  EXPECT_EQ(judged({.verdict = Verdict::mismatch, .rank = 1, .line = 16}), (std::array{true, true, false}));
  EXPECT_EQ(judged({.verdict = Verdict::mismatch, .rank = 0, .line = 17}), (std::array{true, false, false}));
  EXPECT_EQ(judged({.verdict = Verdict::mismatch}), (std::array{true, false, false}));
  EXPECT_EQ(judged({.verdict = Verdict::deadlock, .rank = 1, .line = 17}), (std::array{false, false, false}));
  EXPECT_FALSE(judge(case_with({{.verdict = Verdict::mismatch}}), std::nullopt, 0.1).is_found);
}

TEST(GeneratedSummary, OneOfSeveralExpectedOutcomesIsEnough) {
  const auto one = case_with({{.verdict = Verdict::deadlock}, {.verdict = Verdict::mismatch, .rank = 1, .line = 17}});
  EXPECT_TRUE(judge(one, kMismatchAt17, 0.1).is_line_right);
}

TEST(GeneratedSummary, ListsMissesWithTheirSeedAndWhatWasPlanted) {
  Summary summary;
  const auto one = case_with({{.verdict = Verdict::mismatch, .rank = 1, .line = 17}});
  for (int i = 0; i < 100; ++i) summary.add(judge(one, kMismatchAt17, 0.01 * i));
  EXPECT_TRUE(summary.is_well());
  summary.add(judge(one, verdict("mismatch", 1, "call_at_003"), 0.5));
  EXPECT_TRUE(summary.is_well());  // 99 of 100
  summary.add(judge(one, kOk, 0.5));
  EXPECT_FALSE(summary.is_well());
  const auto text = summary.to_text();
  EXPECT_NE(
      text.find("missed: seed 5: drop (0) on rank 1 at its call 0, barrier at line 17; expected mismatch, began at "
                "rank 1, line 17; told mismatch, began at rank 1, line 3\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("ended well"), std::string::npos) << text;
  EXPECT_EQ(summary.num_judged(), 102);
  EXPECT_DOUBLE_EQ(summary.slowest_s(), 0.99);
  EXPECT_NEAR(summary.median_s(), 0.5, 0.02);
}

TEST(GeneratedSummary, AnyVerdictOnAHealthyProgramIsAFalseOne) {
  Summary summary;
  summary.add_healthy(1, kOk);
  summary.add_healthy(2, std::nullopt);
  EXPECT_TRUE(summary.is_well());
  summary.add_healthy(3, kMismatchAt17);
  EXPECT_FALSE(summary.is_well());
  EXPECT_NE(summary.to_text().find("missed: seed 3: healthy; told mismatch, began at rank 1, line 17"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::sim::generated
