// The option objects of an Accelerator: what they hand on, and which are refused together.
#include "lockstep/config/kwargs_handlers.h"

#include <gtest/gtest.h>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/accelerator/to_kwargs.h"
#include "lockstep/base/error.h"
#include "lockstep/state/state_test_support.h"

namespace lockstep {
namespace {

using config::AutocastKwargs;
using config::DistributedDataParallelKwargs;
using config::FP8RecipeKwargs;
using config::GradScalerKwargs;
using state::as_rank;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

TEST(KW_001, OnlyFieldsThatDifferFromTheDefaultsAreHandedOn) {
  EXPECT_EQ(to_kwargs(GradScalerKwargs{.init_scale = 65536, .growth_factor = 3}),
            Value::dict({{"growth_factor", 3.0}}));
  EXPECT_EQ(to_kwargs(GradScalerKwargs{}), Value::dict({}));
  EXPECT_EQ(to_kwargs(GradScalerKwargs{.growth_interval = 5, .enabled = false}),
            Value::dict({{"growth_interval", 5}, {"enabled", false}}));
}

TEST(AMP_006, EveryKindOfHandlerHasIts) {
  EXPECT_EQ(to_kwargs(AutocastKwargs{.enabled = false}), Value::dict({{"enabled", false}}));
  EXPECT_EQ(to_kwargs(AutocastKwargs{.cache_enabled = true}), Value::dict({{"cache_enabled", true}}));
  EXPECT_EQ(to_kwargs(DistributedDataParallelKwargs{.bucket_cap_mb = 10}), Value::dict({{"bucket_cap_mb", 10}}));
  EXPECT_EQ(to_kwargs(FP8RecipeKwargs{.backend = "TE", .override_linear_precision = {.wgrad = true}}),
            Value::dict({{"backend", "TE"}, {"override_linear_precision", Value::tuple({false, false, true})}}));
  EXPECT_EQ(to_kwargs(config::KwargsHandler(GradScalerKwargs{.init_scale = 8})), Value::dict({{"init_scale", 8.0}}));
}

TEST(KW_005, DefaultsOfDdp) {
  const DistributedDataParallelKwargs kwargs;
  EXPECT_EQ(kwargs.dim, 0);
  EXPECT_TRUE(kwargs.broadcast_buffers);
  EXPECT_EQ(kwargs.bucket_cap_mb, 25);
  EXPECT_EQ(to_kwargs(DistributedDataParallelKwargs{.bucket_cap_mb = 25}), Value::dict({}));
  EXPECT_FALSE(kwargs.find_unused_parameters || kwargs.check_reduction || kwargs.gradient_as_bucket_view ||
               kwargs.static_graph);
  EXPECT_EQ(kwargs.comm_hook, config::DdpCommunicationHookType::no);
  EXPECT_EQ(kwargs.comm_wrapper, config::DdpCommunicationHookType::no);
  EXPECT_EQ(kwargs.comm_state_option, config::PowerSgdOptions{});
}

TEST(KW_006, WhatIsForTheHookIsNotHandedOn) {
  EXPECT_EQ(to_kwargs(DistributedDataParallelKwargs{.bucket_cap_mb = 10,
                                                    .comm_hook = config::DdpCommunicationHookType::fp16,
                                                    .comm_state_option = {.random_seed = 3}}),
            Value::dict({{"bucket_cap_mb", 10}}));
}

TEST(KW_014, ATimeoutThatIsTheDefaultOfItsBackendIsHandedOnWithAnotherBackend) {
  EXPECT_EQ(to_kwargs(config::InitProcessGroupKwargs{}), Value::dict({}));
  EXPECT_EQ(to_kwargs(config::InitProcessGroupKwargs{.backend = "gloo"}),
            Value::dict({{"backend", "gloo"}, {"timeout", 1800.0}}));
  EXPECT_EQ(to_kwargs(config::InitProcessGroupKwargs{.timeout = std::chrono::seconds(600)}), Value::dict({}));
}

TEST(KwargsHandlers, TheProfilersAreHandedOnButForItsCallable) {
  const config::ProfileKwargs kwargs{.activities = std::vector<std::string>{"cpu"},
                                     .schedule_option = config::ProfileSchedule{.wait = 1, .warmup = 1, .active = 2},
                                     .on_trace_ready = [](Profiler&) {},
                                     .with_flops = true};
  EXPECT_EQ(to_kwargs(config::KwargsHandler(kwargs)),
            Value::dict({{"activities", Value::list({"cpu"})},
                         {"schedule_option",
                          Value::dict({{"wait", 1}, {"warmup", 1}, {"active", 2}, {"repeat", 0}, {"skip_first", 0}})},
                         {"with_flops", true}}));
}

TEST(KwargsHandlers, AHandlerIsAsGoodAsTheFieldForIt) {
  as_rank(kCpu, [] {
    const config::InitProcessGroupKwargs five{.timeout = std::chrono::seconds(5)};
    EXPECT_THROW(Accelerator({.timeout = std::chrono::seconds(6), .kwargs_handlers = {five}}), InvalidArgument);
    const config::ProfileKwargs stacks{.with_stack = true};
    EXPECT_THROW(Accelerator({.kwargs_handlers = {stacks}, .profile_kwargs = {.with_flops = true}}), InvalidArgument);
    EXPECT_NO_THROW(Accelerator({.timeout = std::chrono::seconds(5), .kwargs_handlers = {five, stacks}}));
  });
}

TEST(AMP_009, TwoHandlersOfOneKindAreRefused) {
  as_rank(kCpu, [] {
    EXPECT_THROW(Accelerator({.kwargs_handlers = {AutocastKwargs{}, GradScalerKwargs{}, AutocastKwargs{}}}),
                 InvalidArgument);
    EXPECT_FALSE(state::AcceleratorState::is_initialized());
    EXPECT_NO_THROW(Accelerator({.kwargs_handlers = {AutocastKwargs{}, GradScalerKwargs{}}}));
  });
}

TEST(KwargsHandlers, ARefusalLeavesTheRankAsItWas) {
  as_rank(kCpu, [] {
    for (const AcceleratorOptions& refused :
         {AcceleratorOptions{.mixed_precision = "fp16", .kwargs_handlers = {GradScalerKwargs{.growth_factor = 1}}},
          AcceleratorOptions{.mixed_precision = "bf16", .rng_types = {"dice"}},
          AcceleratorOptions{.split_batches = true,
          .dataloader_config = {.split_batches = false},
          .logging_dir = "a",
          .project_config = {.logging_dir = "b"}},
          AcceleratorOptions{.gradient_accumulation_steps = 2,
          .gradient_accumulation_plugin = config::GradientAccumulationPlugin{.num_steps = 3}}}) {
      EXPECT_THROW(Accelerator{refused}, Error);
      EXPECT_FALSE(state::AcceleratorState::is_initialized());
    }
  });
}

TEST(KW_002, WhatIsNoHandlerDoesNotCompile) {
  static_assert(!std::is_constructible_v<config::KwargsHandler, config::GradientAccumulationPlugin>);
  static_assert(!std::is_constructible_v<config::KwargsHandler, std::string>);
  EXPECT_TRUE((std::is_constructible_v<config::KwargsHandler, DistributedDataParallelKwargs>));
}

TEST(KwargsHandlers, DdpOptionsStandInOnePlace) {
  as_rank(kCpu, [] {
    const DistributedDataParallelKwargs searching{.find_unused_parameters = true};
    EXPECT_THROW(Accelerator({.ddp_kwargs = {.static_graph = true}, .kwargs_handlers = {searching}}), InvalidArgument);
    EXPECT_NO_THROW(Accelerator({.ddp_kwargs = searching, .kwargs_handlers = {searching}}));
  });
}

TEST(KwargsHandlers, WhatDdpWouldRefuseIsRefusedWithoutDdpToo) {
  using Hook = config::DdpCommunicationHookType;
  as_rank(kCpu, [] {
    EXPECT_THROW(Accelerator({.ddp_kwargs = {.dim = 1}}), NotSupported);
    EXPECT_THROW(Accelerator({.ddp_kwargs = {.bucket_cap_mb = 0}}), InvalidArgument);
    EXPECT_THROW(Accelerator({.ddp_kwargs = {.comm_wrapper = Hook::power_sgd}}), InvalidArgument);
    EXPECT_THROW(Accelerator({.ddp_kwargs = {.comm_hook = Hook::power_sgd,
                                             .comm_state_option = {.matrix_approximation_rank = 0}}}),
                 InvalidArgument);
    EXPECT_THROW(Accelerator({.ddp_kwargs = {.comm_hook = Hook::batched_power_sgd,
                                             .comm_state_option = {.start_powerSGD_iter = 1}}}),
                 InvalidArgument);
  });
}

TEST(KwargsHandlers, AHandlerForDdpReachesIt) {
  const state::WorldOfOne world;
  as_rank(world.environment(), [] {
    Accelerator accelerator({.kwargs_handlers = {DistributedDataParallelKwargs{.find_unused_parameters = true}}});
    const auto model = accelerator.prepare(torch::nn::Linear(1, 1));
    EXPECT_THROW(static_cast<void>(accelerator.trigger_sync_in_backward(model)), NotSupported);
  });
}

TEST(KW_024, AnFp8RecipeWantsTheModeFp8) {
  as_rank(kCpu, [] {
    EXPECT_THROW(Accelerator({.mixed_precision = "bf16", .kwargs_handlers = {FP8RecipeKwargs{}}}), InvalidArgument);
    EXPECT_THROW(Accelerator({.kwargs_handlers = {FP8RecipeKwargs{}}}), InvalidArgument);
    EXPECT_THROW(Accelerator({.mixed_precision = "fp8", .kwargs_handlers = {FP8RecipeKwargs{.backend = "te"}}}),
                 Missing);
    EXPECT_FALSE(state::AcceleratorState::is_initialized()) << "a refusal changes nothing";
    EXPECT_NO_THROW(Accelerator({.mixed_precision = "fp8", .kwargs_handlers = {FP8RecipeKwargs{.margin = 1}}}));
    EXPECT_NO_THROW(Accelerator({.kwargs_handlers = {FP8RecipeKwargs{}}})) << "the rank's mode is fp8 by now";
  });
}

}  // namespace
}  // namespace lockstep
