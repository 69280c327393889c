#include "lockstep/interpose/rank_slot.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <ATen/ThreadLocalState.h>

#include <thread>

namespace lockstep::interpose {
namespace {

struct Named : RankLocal {
  explicit Named(int number) : number(number) {}
  int number;
};

int number_here() {
  const auto* named = dynamic_cast<Named*>(rank_slot());
  return named == nullptr ? -1 : named->number;
}

TEST(RankSlot, ScopesNestAndRestore) {
  EXPECT_EQ(number_here(), -1);
  {
    const RankSlotScope outer(std::make_shared<Named>(1));
    {
      const RankSlotScope inner(std::make_shared<Named>(2));
      EXPECT_EQ(number_here(), 2);
    }
    EXPECT_EQ(number_here(), 1);
  }
  EXPECT_EQ(number_here(), -1);
}

TEST(RankSlot, BelongsToTheThread) {
  const RankSlotScope scope(std::make_shared<Named>(1));
  int seen = 0;
  std::thread([&seen] { seen = number_here(); }).join();
  EXPECT_EQ(seen, -1);
}

TEST(RankSlot, FollowsLibTorchsThreadLocalState) {
  at::ThreadLocalState state;
  {
    const RankSlotScope scope(std::make_shared<Named>(7));
    state = at::ThreadLocalState();
  }
  int seen = 0;
  std::thread([&] {
    const at::ThreadLocalStateGuard guard(state);
    seen = number_here();
  }).join();
  EXPECT_EQ(seen, 7);
}

TEST(RankSlot, IsSeenByBackwardHooks) {
  const RankSlotScope scope(std::make_shared<Named>(3));
  auto weight = torch::ones({2}, torch::requires_grad());
  int seen = 0;
  weight.register_hook([&seen](const at::Tensor&) { seen = number_here(); });
  (weight * 2).sum().backward();
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace lockstep::interpose
