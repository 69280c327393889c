#include "lockstep/state/gradient_state.h"

#include <gtest/gtest.h>

namespace lockstep::state {
namespace {

std::shared_ptr<DataLoaderStatus> loader(bool end, std::int64_t remainder) {
  return std::make_shared<DataLoaderStatus>(DataLoaderStatus{.end_of_dataloader = end, .remainder = remainder});
}

TEST(STATE_120, AFreshStateSynchronisesEveryStep) {
  const GradientState state;
  EXPECT_TRUE(state.sync_gradients);
  EXPECT_EQ(state.num_steps, 1);
  EXPECT_FALSE(state.adjust_scheduler);
  EXPECT_TRUE(state.sync_with_dataloader);
  EXPECT_FALSE(state.end_of_dataloader());
  EXPECT_EQ(state.remainder(), -1);
  EXPECT_FALSE(state.in_dataloader());
  EXPECT_EQ(state.active_dataloader(), nullptr);
}

TEST(STATE_121, FlagsAreThoseOfTheActiveLoader) {
  GradientState state;
  const auto first = loader(true, 3);
  state.add_dataloader(first);
  EXPECT_TRUE(state.end_of_dataloader());
  EXPECT_EQ(state.remainder(), 3);
  state.remove_dataloader(first);
  EXPECT_FALSE(state.end_of_dataloader());
  EXPECT_EQ(state.remainder(), -1);
}

TEST(STATE_122, AfterANestedPassTheOuterLoaderIsActiveAgain) {
  GradientState state;
  const auto outer = loader(true, 1);
  const auto inner = loader(false, 2);
  state.add_dataloader(outer);
  state.add_dataloader(inner);
  EXPECT_FALSE(state.end_of_dataloader());
  inner->end_of_dataloader = true;
  EXPECT_TRUE(state.end_of_dataloader());
  state.remove_dataloader(inner);
  EXPECT_TRUE(state.end_of_dataloader());
  EXPECT_EQ(state.remainder(), 1);
}

TEST(STATE_123, ALoaderThatIsGoneReadsAsNone) {
  GradientState state;
  state.add_dataloader(loader(true, 5));
  EXPECT_EQ(state.active_dataloader(), nullptr);
  EXPECT_FALSE(state.end_of_dataloader());
}

TEST(GradientState, RemovesEveryRegistrationOfALoader) {
  GradientState state;
  const auto one = loader(false, -1);
  state.add_dataloader(one);
  state.add_dataloader(one);
  EXPECT_EQ(state.num_registrations(), 2U);
  state.remove_dataloader(one);
  EXPECT_EQ(state.num_registrations(), 0U);
}

}  // namespace
}  // namespace lockstep::state
