#include "lockstep/state/accelerator_state.h"

#include <gtest/gtest.h>

#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep::state {
namespace {

const Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

AcceleratorStateOptions with_precision(const std::string& word) { return {.mixed_precision = word, .partial = {}}; }

TEST(STATE_110, BeforeAnAcceleratorThereIsNoState) {
  as_rank(kCpu, [] {
    const auto text = test::message_of<InvalidArgument>([] { static_cast<void>(AcceleratorState()); });
    EXPECT_NE(text.find("Accelerator"), std::string::npos) << text;
    EXPECT_NE(RankContext::current().partial, nullptr);  // a side effect that users rely on
    EXPECT_FALSE(AcceleratorState::is_initialized());
    const AcceleratorState made{AcceleratorStateOptions{}};
    EXPECT_TRUE(AcceleratorState::is_initialized());
    EXPECT_EQ(AcceleratorState().num_processes(), 1);
  });
}

TEST(STATE_111, AnotherPrecisionIsRefusedAndChangesNothing) {
  as_rank(kCpu, [] {
    const AcceleratorState first(with_precision("bf16"));
    const auto text =
        test::message_of<InvalidArgument>([] { static_cast<void>(AcceleratorState(with_precision("fp16"))); });
    EXPECT_NE(text.find("already initialized"), std::string::npos) << text;
    EXPECT_NE(text.find("'bf16'"), std::string::npos) << text;
    EXPECT_NE(text.find("'fp16'"), std::string::npos) << text;
    EXPECT_EQ(first.mixed_precision(), MixedPrecision::bf16);
    EXPECT_EQ(AcceleratorState(with_precision("bf16")).mixed_precision(), MixedPrecision::bf16);
    EXPECT_EQ(AcceleratorState(AcceleratorStateOptions{}).mixed_precision(), MixedPrecision::bf16);
  });
}

TEST(STATE_111, CpuIsRefusedOnAnotherDevice) {
  as_rank({{"ACCELERATE_TORCH_DEVICE", "meta"}}, [] {
    const AcceleratorState first{AcceleratorStateOptions{}};
    EXPECT_THROW(AcceleratorState({.mixed_precision = {}, .partial = {.cpu = true}}), InvalidArgument);
    EXPECT_EQ(first.device(), at::Device(at::kMeta));
  });
  as_rank(kCpu, [] {
    const AcceleratorState first{AcceleratorStateOptions{}};
    EXPECT_NO_THROW(AcceleratorState({.mixed_precision = {}, .partial = {.cpu = true}}));
  });
}

TEST(STATE_112, AResetEmptiesItsOwnStateAndOnRequestThePartialOne) {
  as_rank(kCpu, [] {
    const AcceleratorState state(with_precision("bf16"));
    AcceleratorState::reset();
    EXPECT_FALSE(AcceleratorState::is_initialized());
    EXPECT_EQ(state.num_processes(), 1);  // PartialState is still there
    const auto text = test::message_of<AttributeError>([&state] { static_cast<void>(state.mixed_precision()); });
    EXPECT_NE(text.find("reset"), std::string::npos) << text;
    EXPECT_EQ(AcceleratorState(with_precision("fp16")).mixed_precision(), MixedPrecision::fp16);
    AcceleratorState::reset(/*reset_partial_state=*/true);
    EXPECT_THROW(static_cast<void>(state.num_processes()), AttributeError);
  });
}

TEST(STATE_113, ThePrecisionIsTheArgumentElseTheVariableElseNo) {
  as_rank(kCpu, [] { EXPECT_EQ(AcceleratorState(AcceleratorStateOptions{}).mixed_precision(), MixedPrecision::no); });
  auto environment = kCpu;
  environment.set("ACCELERATE_MIXED_PRECISION", "bf16");
  as_rank(environment,
          [] { EXPECT_EQ(AcceleratorState(AcceleratorStateOptions{}).mixed_precision(), MixedPrecision::bf16); });
  as_rank(environment,
          [] { EXPECT_EQ(AcceleratorState(with_precision("fp16")).mixed_precision(), MixedPrecision::fp16); });
}

TEST(STATE_113, OtherWordsAreRefusedAndCaseMatters) {
  for (const char* word : {"no", "fp8", "fp16", "bf16"}) EXPECT_EQ(to_word(mixed_precision_from(word)), word);
  for (const char* word : {"BF16", "fp32", ""}) {
    const auto text = test::message_of<InvalidArgument>([word] { mixed_precision_from(word); });
    EXPECT_NE(text.find("no, fp8, fp16, bf16"), std::string::npos) << text;
  }
  as_rank(kCpu, [] {
    EXPECT_THROW(AcceleratorState(with_precision("BF16")), InvalidArgument);
    EXPECT_FALSE(AcceleratorState::is_initialized());
  });
}

TEST(STATE_115, ThePrecisionFollowsABlankLine) {
  as_rank(kCpu, [] {
    const AcceleratorState state(with_precision("bf16"));
    EXPECT_EQ(state.to_text(), state.PartialState::to_text() + "\nMixed precision type: bf16\n");
  });
}

}  // namespace
}  // namespace lockstep::state
