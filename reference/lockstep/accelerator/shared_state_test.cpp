// What Accelerators of a rank share, and what each has of its own.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using state::as_rank;
using test::run_thread_ranks;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

TEST(STATE_103, TheAcceleratorMirrorsItsState) {
  run_thread_ranks(3, [] {
    Accelerator accelerator;
    const auto& state = accelerator.state();
    EXPECT_EQ(accelerator.device(), state.device());
    EXPECT_EQ(accelerator.distributed_type(), state.distributed_type());
    EXPECT_EQ(accelerator.num_processes(), 3);
    EXPECT_EQ(accelerator.process_index(), state.process_index());
    EXPECT_EQ(accelerator.local_process_index(), state.local_process_index());
    EXPECT_EQ(accelerator.mixed_precision(), state::MixedPrecision::no);
    EXPECT_TRUE(accelerator.use_distributed());
    EXPECT_EQ(accelerator.is_main_process(), state.process_index() == 0);
    EXPECT_EQ(accelerator.is_local_main_process(), state.process_index() == 0);
    EXPECT_EQ(accelerator.is_last_process(), state.process_index() == 2);
    EXPECT_TRUE(accelerator.sync_gradients());
    accelerator.set_sync_gradients(false);
    EXPECT_FALSE(accelerator.gradient_state().sync_gradients);
  });
}

TEST(STATE_111, ASecondAcceleratorWithAnotherPrecisionIsRefusedAndChangesNothing) {
  as_rank(kCpu, [] {
    Accelerator first({.gradient_accumulation_steps = 2});
    const auto text = test::message_of<InvalidArgument>(
        [] { Accelerator({.mixed_precision = "fp16", .gradient_accumulation_steps = 4}); });
    EXPECT_NE(text.find("already initialized"), std::string::npos) << text;
    EXPECT_THROW(Accelerator({.mixed_precision = "BF16"}), InvalidArgument);
    EXPECT_EQ(first.mixed_precision(), state::MixedPrecision::no);
    EXPECT_EQ(first.gradient_accumulation_steps(), 2);
    EXPECT_NO_THROW(Accelerator({.mixed_precision = "no"}));
    EXPECT_NO_THROW(Accelerator());
  });
}

TEST(STATE_111, AnyRefusedOptionLeavesTheSharedStateAsItWas) {
  as_rank(kCpu, [] {
    Accelerator first({.gradient_accumulation_steps = 2});
    EXPECT_THROW(Accelerator({.gradient_accumulation_steps = 4, .rng_types = {"nonsense"}}), InvalidArgument);
    EXPECT_THROW(Accelerator({.gradient_accumulation_steps = 0}), InvalidArgument);
    EXPECT_EQ(first.gradient_accumulation_steps(), 2);
  });
}

TEST(STATE_124, ALaterAcceleratorSetsTheAccumulationForAll) {
  as_rank(kCpu, [] {
    Accelerator first({.gradient_accumulation_steps = 2});
    Accelerator second;
    EXPECT_EQ(first.gradient_accumulation_steps(), 1);
    EXPECT_EQ(second.gradient_accumulation_steps(), 1);
    first.set_gradient_accumulation_steps(3);
    EXPECT_EQ(second.gradient_state().num_steps, 3);
    EXPECT_EQ(&first.gradient_state(), &second.gradient_state());
  });
}

TEST(STATE_124, EachAcceleratorCountsItsOwnSteps) {
  as_rank(kCpu, [] {
    Accelerator first({.gradient_accumulation_steps = 2});
    Accelerator second({.gradient_accumulation_steps = 2});
    static_cast<void>(first.accumulate());
    EXPECT_FALSE(first.sync_gradients());
    static_cast<void>(second.accumulate());
    EXPECT_FALSE(second.sync_gradients()) << "counted on from the other's step";
    static_cast<void>(first.accumulate());
    EXPECT_TRUE(first.sync_gradients());
  });
}

TEST(STATE_133, TheAcceleratorsDecoratorsRunWhereTheySay) {
  std::array<std::atomic<int>, 5> calls{};
  std::array<std::atomic<int>, 5> alone{};
  const auto call_all = [](auto& counts) {
    const Accelerator accelerator;
    const auto count = [&counts](std::size_t i) { return [&counts, i] { return ++counts[i]; }; };
    accelerator.on_main_process(count(0))();
    accelerator.on_local_main_process(count(1))();
    accelerator.on_last_process(count(2))();
    EXPECT_EQ(accelerator.on_process(1, count(3))().has_value(),
              accelerator.process_index() == 1 || accelerator.num_processes() == 1);
    accelerator.on_local_process(7, count(4))();
  };
  run_thread_ranks(3, [&] { call_all(calls); });
  EXPECT_EQ(calls[0], 1);
  EXPECT_EQ(calls[1], 1);
  EXPECT_EQ(calls[2], 1);
  EXPECT_EQ(calls[3], 1);
  EXPECT_EQ(calls[4], 0);  // nobody has that index
  as_rank(kCpu, [&] { call_all(alone); });
  for (const auto& count : alone) EXPECT_EQ(count, 1);
}

// PartialState's decide when they are made; a state that is reset in between tells the two apart.
TEST(STATE_133, TheAcceleratorsDecideAtTheCall) {
  as_rank(kCpu, [] {
    const Accelerator accelerator;
    const auto at_call = accelerator.on_main_process([] { return 1; });
    const auto when_made = state::on_main_process(accelerator.state(), [] { return 1; });
    state::AcceleratorState::reset(/*reset_partial_state=*/true);
    EXPECT_EQ(when_made(), 1);
    EXPECT_THROW(at_call(), AttributeError);
  });
}

TEST(STATE_134, PrintIsHeardOfTheLocalMainProcessOnly) {
  testing::internal::CaptureStdout();
  run_thread_ranks(2, [] { Accelerator().print("hello"); });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "hello\n");
}

TEST(ACC_043, AMarkOnOneRankIsSeenOnAllAndOnce) {
  run_thread_ranks(3, [] {
    Accelerator accelerator;
    EXPECT_FALSE(accelerator.check_trigger());
    if (accelerator.process_index() == 1) accelerator.set_trigger();
    EXPECT_TRUE(accelerator.check_trigger());
    EXPECT_FALSE(accelerator.check_trigger());
  });
  as_rank(kCpu, [] {
    Accelerator alone;
    alone.set_trigger();
    EXPECT_TRUE(alone.check_trigger());
    EXPECT_FALSE(alone.check_trigger());
  });
}

}  // namespace
}  // namespace lockstep
