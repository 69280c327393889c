// Messages from one rank to another, and calls that are in flight together, on every backend.
#include <ATen/Functions.h>

#include <set>

#include "lockstep/comm/comm_test_support.h"
#include "lockstep/comm/test_tensors.h"

namespace lockstep::comm {
namespace {

TEST_P(CollectiveTest, CallsMayBeInFlightTogether) {
  run([](TestRank& me) {
    Tensors tensors;
    std::vector<Work> works;
    for (int call = 0; call < 10; ++call) {
      tensors.push_back(at::full({4}, me.rank + call, at::kLong));
      works.push_back(me.group.all_reduce(tensors.back()));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
    const int ranks = me.size * (me.size - 1) / 2;
    for (int call = 0; call < 10; ++call) {
      EXPECT_TRUE(works[call].is_completed());
      EXPECT_TRUE(same_bits(tensors[call], at::full({4}, ranks + me.size * call, at::kLong)));
    }
  });
}

TEST_P(CollectiveTest, MatchesMessagesByTag) {
  run([](TestRank& me) {
    const auto& group = me.group;
    if (me.rank == 0) {
      std::vector<Work> works;
      for (const int tag : {1, 2, 3})
        works.push_back(group.send(at::full({2}, tag, at::kFloat), Member::global(1), {.tag = tag}));
      for (auto& work : works) work.wait();
    } else if (me.rank == 1) {
      for (const int tag : {3, 1, 2}) {
        const auto tensor = at::zeros({2});
        group.receive(tensor, Member::global(0), {.tag = tag}).wait();
        EXPECT_TRUE(same_bits(tensor, at::full({2}, tag, at::kFloat)));
      }
    }
    group.barrier().wait();
    if (me.rank != 0) group.send(at::full({1}, me.rank, at::kLong), Member::global(0), {.tag = 9}).wait();
    std::set<int> senders;
    for (int i = 1; me.rank == 0 && i < me.size; ++i) {
      const auto tensor = at::zeros({1}, at::kLong);
      auto work = group.receive_from_any(tensor, {.tag = 9});
      work.wait();
      EXPECT_EQ(tensor.item<std::int64_t>(), work.source_rank());
      senders.insert(work.source_rank());
    }
    if (me.rank == 0) EXPECT_EQ(senders.size(), static_cast<std::size_t>(me.size - 1));
  });
}

// M11: both orders, one element and 4 MiB, three in flight.
TEST_P(CollectiveTest, NeighboursMayAllSendFirstOrAllReceiveFirst) {
  run([](TestRank& me) {
    const auto next = Member::global((me.rank + 1) % me.size);
    const int before = (me.rank + me.size - 1) % me.size;
    for (const std::int64_t elements : {1, 1 << 20}) {
      for (const bool send_first : {true, false}) {
        Tensors received;
        std::vector<Work> works;
        for (int tag = 0; tag < 3; ++tag) {
          received.push_back(at::zeros({elements}));
          const auto sent = at::full({elements}, me.rank + tag, at::kFloat);
          if (send_first) works.push_back(me.group.send(sent, next, {.tag = tag}));
          works.push_back(me.group.receive(received.back(), Member::global(before), {.tag = tag}));
          if (!send_first) works.push_back(me.group.send(sent, next, {.tag = tag}));
        }
        for (auto& work : works) work.wait();
        for (int tag = 0; tag < 3; ++tag)
          EXPECT_TRUE(same_bits(received[tag], at::full({elements}, before + tag, at::kFloat)));
      }
    }
  });
}

}  // namespace
}  // namespace lockstep::comm
