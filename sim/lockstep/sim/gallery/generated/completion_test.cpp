#include "lockstep/sim/gallery/generated/completion.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::sim::generated {
namespace {

using Members = std::vector<int>;

Members needed(Action action, int member, int root, int num_members) {
  auto members = needed_members({.action = action, .member = member, .root = root, .num_members = num_members});
  std::ranges::sort(members);
  return members;
}

TEST(GeneratedCompletion, MostCollectivesNeedEverybody) {
  for (const auto action : {Action::all_reduce, Action::all_gather, Action::reduce_scatter, Action::all_to_all,
                            Action::reduce, Action::barrier}) {
    EXPECT_EQ(needed(action, 1, 0, 4), (Members{0, 2, 3})) << to_word(action);
  }
}

TEST(GeneratedCompletion, OfGatherAndScatterOnlyTheRootNeedsEverybody) {
  for (const auto action : {Action::gather, Action::scatter}) {
    EXPECT_EQ(needed(action, 2, 2, 4), (Members{0, 1, 3})) << to_word(action);
    EXPECT_EQ(needed(action, 0, 2, 4), Members{2}) << to_word(action);
  }
}

// Root 0 of 6 sends to 1, 2 and 4; 1 to 3 and 5.
TEST(GeneratedCompletion, ABroadcastNeedsAncestorsAndChildren) {
  EXPECT_EQ(needed(Action::broadcast, 0, 0, 6), (Members{1, 2, 4}));
  EXPECT_EQ(needed(Action::broadcast, 1, 0, 6), (Members{0, 3, 5}));
  EXPECT_EQ(needed(Action::broadcast, 2, 0, 6), Members{0});
  EXPECT_EQ(needed(Action::broadcast, 3, 0, 6), (Members{0, 1}));
  EXPECT_EQ(needed(Action::broadcast, 5, 0, 6), (Members{0, 1}));
}

TEST(GeneratedCompletion, MembersOfABroadcastAreCountedFromTheRoot) {
  EXPECT_EQ(needed(Action::broadcast, 1, 1, 4), (Members{2, 3}));
  EXPECT_EQ(needed(Action::broadcast, 0, 1, 4), (Members{1, 2}));
}

}  // namespace
}  // namespace lockstep::sim::generated
