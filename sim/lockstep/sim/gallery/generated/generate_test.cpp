#include "lockstep/sim/gallery/generated/generate.h"

#include <gtest/gtest.h>

#include <set>

#include "lockstep/sim/gallery/generated/outcome.h"

namespace lockstep::sim::generated {
namespace {

constexpr std::uint64_t kSeeds = 1000;
const std::set<Outcome> kCompletes = {{.verdict = Verdict::completes}};

TEST(Generate, ProgramsOfAThousandSeedsComplete) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    ASSERT_EQ(expected_outcomes(generate(seed)), kCompletes) << "seed " << seed;
  }
}

TEST(Generate, ProgramsHaveTheSizesThatAreAsked) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto program = generate(seed);
    ASSERT_GE(program.world_size, 2) << "seed " << seed;
    ASSERT_LE(program.world_size, 6) << "seed " << seed;
    ASSERT_LE(program.groups.size(), 3U) << "seed " << seed;
    for (const auto& group : program.groups) ASSERT_GE(group.ranks.size(), 2U) << "seed " << seed;
    for (const auto& calls : program.ranks) {
      ASSERT_GE(calls.size(), 10U) << "seed " << seed;
      ASSERT_LE(calls.size(), 60U) << "seed " << seed;
      for (const auto& call : calls) {
        ASSERT_LT(call.line, kMaxLines) << "seed " << seed;
        if (has_tensor(call.action)) ASSERT_GE(num_elements(call), 12) << "seed " << seed;
      }
      ASSERT_EQ(calls.back().action, Action::barrier) << "seed " << seed;
    }
  }
}

TEST(Generate, EveryKindOfCallComesUp) {
  std::set<Action> seen;
  std::set<std::size_t> num_groups;
  int num_labelled = 0;
  int num_asynchronous = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto program = generate(seed);
    num_groups.insert(program.groups.size());
    for (const auto& calls : program.ranks) {
      for (const auto& call : calls) {
        seen.insert(call.action);
        num_labelled += call.label.empty() ? 0 : 1;
        num_asynchronous += call.asynchronous ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(Action::store_wait) + 1);  // all that a healthy program has
  EXPECT_EQ(num_groups, (std::set<std::size_t>{1, 2, 3}));
  EXPECT_GT(num_labelled, 0);
  EXPECT_GT(num_asynchronous, num_labelled);
}

TEST(Generate, ASeedGivesOneProgram) {
  EXPECT_EQ(generate(7), generate(7));
  EXPECT_NE(generate(7), generate(8));
}

}  // namespace
}  // namespace lockstep::sim::generated
