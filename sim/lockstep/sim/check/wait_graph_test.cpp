#include "lockstep/sim/check/wait_graph.h"

#include <gtest/gtest.h>

namespace lockstep::sim {
namespace {

RankNode runs() { return {}; }
RankNode gone() { return {.is_gone = true}; }
RankNode waits_for(std::vector<int> ranks) { return {.needs = {{.ranks = std::move(ranks)}}}; }
RankNode waits_for_any(std::vector<int> ranks) { return {.needs = {{.ranks = std::move(ranks), .any = true}}}; }

using Ranks = std::vector<int>;

TEST(WaitGraph, RanksThatRunAreNotStuck) { EXPECT_EQ(stuck_ranks({runs(), runs()}), Ranks{}); }

TEST(WaitGraph, ARankThatWaitsForOneThatRunsIsNotStuck) {
  EXPECT_EQ(stuck_ranks({runs(), waits_for({0}), waits_for({1})}), Ranks{});
}

TEST(WaitGraph, ACycleIsStuckWhateverTheOthersDo) {
  EXPECT_EQ(stuck_ranks({waits_for({1}), waits_for({0}), runs()}), (Ranks{0, 1}));
}

TEST(WaitGraph, WhoWaitsForAllOfSeveralIsStuckWithOneOfThem) {
  EXPECT_EQ(stuck_ranks({waits_for({1, 2}), waits_for({0}), runs()}), (Ranks{0, 1}));
}

TEST(WaitGraph, WhoWaitsForAnyOfSeveralGoesOnWithOneOfThem) {
  EXPECT_EQ(stuck_ranks({waits_for_any({1, 2}), waits_for({0}), runs()}), Ranks{});
  EXPECT_EQ(stuck_ranks({waits_for_any({1, 2}), waits_for({0}), waits_for({0})}), (Ranks{0, 1, 2}));
}

TEST(WaitGraph, NobodyCanBeHadOfNobody) { EXPECT_EQ(stuck_ranks({waits_for_any({})}), Ranks{0}); }

TEST(WaitGraph, ARankThatIsGoneHoldsItsWaitersAndIsNotStuckItself) {
  EXPECT_EQ(stuck_ranks({waits_for({1}), gone(), runs()}), Ranks{0});
}

TEST(WaitGraph, AnotherThreadThatMovesMovesTheRank) {
  const RankNode two_threads{.needs = {{.ranks = {1}}, {.ranks = {2}}}};
  EXPECT_EQ(stuck_ranks({two_threads, waits_for({0}), runs()}), Ranks{});
}

TEST(WaitGraph, AWaitThatNeedsNobodyIsAboutToEnd) { EXPECT_EQ(stuck_ranks({waits_for({}), waits_for({0})}), Ranks{}); }

TEST(WaitGraph, TheFirstIsTheOneThatIsGone) {
  const std::vector<RankNode> nodes = {waits_for({1}), gone(), waits_for({0, 1})};
  EXPECT_EQ(first_of(nodes, stuck_ranks(nodes)), 1);
}

TEST(WaitGraph, TheFirstIsTheOneThatAloneWaitsForThoseWhoAreGone) {
  const std::vector<RankNode> nodes = {waits_for({1, 2}), gone(), gone()};
  EXPECT_EQ(first_of(nodes, stuck_ranks(nodes)), 0);
}

TEST(WaitGraph, TheFirstIsTheOneForWhichAllOthersWait) {
  const std::vector<RankNode> nodes = {waits_for({2}), waits_for({2}), waits_for({0, 1})};
  EXPECT_EQ(first_of(nodes, stuck_ranks(nodes)), 2);
}

TEST(WaitGraph, TwoThatWaitForEachOtherDoNotTellWhoBegan) {
  const std::vector<RankNode> nodes = {waits_for({1}), waits_for({0})};
  EXPECT_EQ(first_of(nodes, stuck_ranks(nodes)), -1);
}

}  // namespace
}  // namespace lockstep::sim
