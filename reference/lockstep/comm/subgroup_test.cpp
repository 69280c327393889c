// Groups of some of the ranks, on every backend.
#include <ATen/Functions.h>

#include <numeric>

#include "lockstep/base/error.h"
#include "lockstep/comm/comm_test_support.h"
#include "lockstep/comm/test_tensors.h"

namespace lockstep::comm {
namespace {

TEST_P(CollectiveTest, SubgroupsCountTheirRanksInTheOrderGiven) {
  run([](TestRank& me) {
    std::vector<int> backwards;
    for (int rank = me.size - 1; rank >= 0; --rank) backwards.push_back(rank);
    const auto reversed = me.group.new_group(backwards);
    EXPECT_EQ(reversed.rank(), me.size - 1 - me.rank);
    const auto gathered = at::zeros({me.size}, at::kLong);
    reversed.all_gather(gathered, at::full({1}, me.rank, at::kLong)).wait();
    EXPECT_TRUE(same_bits(gathered, at::tensor(std::vector<std::int64_t>(backwards.begin(), backwards.end()))));

    // Everybody alone: groups of one, which bear one name and still are apart.
    ProcessGroup alone;
    for (int rank = 0; rank < me.size; ++rank) {
      const auto group = me.group.new_group({rank}, "alone");
      EXPECT_EQ(static_cast<bool>(group), rank == me.rank);
      if (group) alone = group;
    }
    const auto tensor = at::full({1}, me.rank);
    alone.all_reduce(tensor).wait();
    alone.barrier().wait();
    EXPECT_TRUE(same_bits(tensor, at::full({1}, me.rank)));
  });
}

// The rows of a mesh: several groups of one name, side by side, and groups of such a group.
TEST_P(CollectiveTest, SubgroupsOfOneNameAreApart) {
  if (GetParam().size < 4) return;
  run([](TestRank& me) {
    std::vector<int> low;
    std::vector<int> high;
    for (int rank = 0; rank < me.size; ++rank) (rank < me.size / 2 ? low : high).push_back(rank);
    const auto first = me.group.new_group(low, "tensor");
    const auto second = me.group.new_group(high, "tensor");
    const auto& mine = first ? first : second;
    const auto tensor = at::full({1}, me.rank, at::kLong);
    mine.all_reduce(tensor).wait();
    const auto& ranks = first ? low : high;
    EXPECT_EQ(tensor.item<std::int64_t>(), std::accumulate(ranks.begin(), ranks.end(), 0));
    EXPECT_EQ(mine.ranks(), ranks);

    const auto pair = mine.new_group({ranks[1], ranks[0]});
    EXPECT_EQ(static_cast<bool>(pair), mine.rank() < 2);
    if (!pair) return;
    const auto root = at::full({1}, me.rank, at::kLong);
    pair.broadcast(root, {.root = Member::group(0)}).wait();
    EXPECT_EQ(root.item<std::int64_t>(), ranks[1]);
  });
}

// M9: a member is named by its rank in the world or in the group, and both mean the same source.
TEST_P(CollectiveTest, MembersAreNamedGloballyOrWithinTheGroup) {
  run([](TestRank& me) {
    std::vector<int> others;
    for (int rank = 1; rank < me.size; ++rank) others.push_back(rank);
    const auto group = me.group.new_group(others);
    if (me.rank == 0) {
      EXPECT_FALSE(group);
      EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.barrier().wait(); }), "a rank outside it");
      EXPECT_CONTAINS(message_of<InvalidArgument>([&] { static_cast<void>(group.size()); }), "outside");
      return;
    }
    for (const auto root : {Member::global(1), Member::group(0)}) {
      const auto tensor = sample(me.rank, at::kFloat, {2});
      group.broadcast(tensor, {.root = root}).wait();
      EXPECT_TRUE(same_bits(tensor, sample(1, at::kFloat, {2})));
    }
    EXPECT_EQ(group.group_rank(Member::global(me.rank)), me.rank - 1);
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.broadcast(at::zeros({1})).wait(); }), "one of 1");
    EXPECT_CONTAINS(message_of<InvalidArgument>(
                        [&] { group.broadcast(at::zeros({1}), {.root = Member::group(me.size - 1)}).wait(); }),
                    "from 0 to");
  });
}

TEST_P(CollectiveTest, NewGroupRefusesBadLists) {
  run([](TestRank& me) {
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { static_cast<void>(me.group.new_group({0, 0})); }), "each once");
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { static_cast<void>(me.group.new_group({})); }), "at least one");
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { static_cast<void>(me.group.new_group({me.size})); }),
                    std::to_string(me.size));
    const auto everyone = me.group.new_group(me.group.ranks());  // the count of subgroups is still the same everywhere
    everyone.barrier().wait();
  });
}

}  // namespace
}  // namespace lockstep::comm
