#include "lockstep/optim/schedules.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/composed_schedules.h"
#include "lockstep/optim/learning_rates.h"
#include "lockstep/optim/one_cycle_lr.h"
#include "lockstep/optim/warmup.h"

// What PyTorch refuses, and what its numbers (schedules_golden_test.cpp) do not show.
namespace lockstep::optim {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;
using Rates = std::vector<double>;
using Parts = std::vector<std::shared_ptr<Scheduler>>;

std::shared_ptr<SGD> sgd(double rate = 1.0) {
  return std::make_shared<SGD>(std::vector{at::ones({1}).set_requires_grad(true)}, SGDOptions(rate));
}

TEST(Schedules, FactorsAreRefusedAsByPyTorch) {
  EXPECT_THROW(ConstantLr(sgd(), {.factor = 1.5}), InvalidArgument);
  EXPECT_THROW(ConstantLr(sgd(), {.factor = -0.1}), InvalidArgument);
  EXPECT_THROW(LinearLr(sgd(), {.start_factor = 0.0}), InvalidArgument);
  EXPECT_THROW(LinearLr(sgd(), {.start_factor = 1.1}), InvalidArgument);
  EXPECT_THROW(LinearLr(sgd(), {.end_factor = 1.1}), InvalidArgument);
  EXPECT_THROW(LinearLr(sgd(), {.end_factor = -0.1}), InvalidArgument);
}

// Python's ZeroDivisionError comes in the first step.
TEST(Schedules, PeriodsOfNoStepsAreRefused) {
  EXPECT_THROW(StepLr(sgd(), 0), InvalidArgument);
  EXPECT_THROW(CosineAnnealingLr(sgd(), 0), InvalidArgument);
}

TEST(ConstantLr, AFactorOf0CannotBeUndone) {
  ConstantLr schedule(sgd(), {.factor = 0.0, .total_iters = 2});
  schedule.step();
  EXPECT_EQ(schedule.last_learning_rates(), Rates{0.0});
  EXPECT_THROW(schedule.step(), InvalidArgument);
}

TEST(OneCycleLr, RefusesAsPyTorch) {
  EXPECT_THROW(OneCycleLr(sgd(), {.max_lr = 1.0}), InvalidArgument);
  EXPECT_THROW(OneCycleLr(sgd(), {.max_lr = 1.0, .total_steps = 0}), InvalidArgument);
  EXPECT_THROW(OneCycleLr(sgd(), {.max_lr = 1.0, .epochs = 2}), InvalidArgument);
  EXPECT_THROW(OneCycleLr(sgd(), {.max_lr = 1.0, .epochs = 2, .steps_per_epoch = -1}), InvalidArgument);
  EXPECT_THROW(OneCycleLr(sgd(), {.max_lr = 1.0, .total_steps = 10, .pct_start = 1.2}), InvalidArgument);
  EXPECT_THROW(OneCycleLr(sgd(), {.max_lr = Rates{1.0, 2.0}, .total_steps = 10}), InvalidArgument);
  EXPECT_THROW(OneCycleLr(sgd(), {.max_lr = 1.0, .total_steps = 10, .pct_start = 0.1}), InvalidArgument);  // no phase
}

TEST(OneCycleLr, WantsAMomentumToCycle) {
  const auto adagrad = std::make_shared<torch::optim::Adagrad>(std::vector{at::ones({1}).set_requires_grad(true)});
  EXPECT_THROW(OneCycleLr(adagrad, {.max_lr = 1.0, .total_steps = 10}), InvalidArgument);
  const OneCycleLr schedule(adagrad, {.max_lr = 1.0, .total_steps = 10, .cycle_momentum = false});
  EXPECT_NEAR(schedule.last_learning_rates()[0], 0.04, 1e-15);
  EXPECT_EQ(schedule.total_steps(), 10);
}

TEST(ComposedSchedules, WantSchedulesOfOneOptimizer) {
  const auto one = sgd(), other = sgd();
  const auto mine = std::make_shared<ExponentialLr>(one, 0.5);
  const auto foreign = std::make_shared<ExponentialLr>(other, 0.5);
  EXPECT_THROW(ChainedScheduler(Parts{}), InvalidArgument);
  EXPECT_THROW(ChainedScheduler(Parts{mine, foreign}), InvalidArgument);
  EXPECT_THROW(SequentialLr(one, {}, {}), InvalidArgument);
  EXPECT_THROW(SequentialLr(one, {mine, foreign}, {3}), InvalidArgument);
  EXPECT_THROW(SequentialLr(one, {mine}, {3}), InvalidArgument);
}

TEST(ComposedSchedules, RefuseAPlateau) {
  const auto optimizer = sgd();
  const auto plateau = from_torch(std::make_shared<torch::optim::ReduceLROnPlateauScheduler>(*optimizer), optimizer);
  EXPECT_THROW(ChainedScheduler(Parts{plateau}), InvalidArgument);
  EXPECT_THROW(SequentialLr(optimizer, {plateau}, {}), InvalidArgument);
}

TEST(SequentialLr, WhatCannotReturnToItsStartIsNoLaterPart) {
  const auto optimizer = sgd();
  const auto first = std::make_shared<ExponentialLr>(optimizer, 0.5);
  const auto chained = std::make_shared<ChainedScheduler>(Parts{std::make_shared<ExponentialLr>(optimizer, 0.5)});
  SequentialLr ends_in_chained(optimizer, {first, chained}, {1});
  EXPECT_THROW(ends_in_chained.step(), NotSupported);
  SequentialLr ends_in_torch(
      optimizer, {first, from_torch(std::make_shared<torch::optim::StepLR>(*optimizer, 2, 0.1), optimizer)}, {1});
  EXPECT_THROW(ends_in_torch.step(), NotSupported);
}

// A schedule starts from the rates before any schedule, not from what an earlier one made of them.
TEST(LearningRates, InitialOnesOutliveSchedules) {
  const auto optimizer = sgd(0.4);
  const LinearLr warmup(optimizer, {.start_factor = 0.25});
  EXPECT_EQ(learning_rates(*optimizer), Rates{0.1});
  EXPECT_EQ(initial_learning_rates(optimizer), Rates{0.4});
  const LambdaLr half(optimizer, [](std::int64_t) { return 0.5; });
  EXPECT_EQ(learning_rates(*optimizer), Rates{0.2});
  EXPECT_EQ(initial_learning_rates(sgd(0.3)), Rates{0.3});  // another optimizer has its own
}

TEST(Warmup, RisesThenFallsAsTransformersSchedules) {
  const auto linear = linear_with_warmup({.num_warmup_steps = 4, .num_training_steps = 12});
  const auto cosine = cosine_with_warmup({.num_warmup_steps = 4, .num_training_steps = 12});
  const auto constant = constant_with_warmup(4);
  for (const auto& factor : {linear, cosine, constant}) {
    EXPECT_EQ(factor(0), 0.0);
    EXPECT_EQ(factor(1), 0.25);
    EXPECT_EQ(factor(4), 1.0);
  }
  EXPECT_EQ(linear(10), 0.25);
  EXPECT_EQ(linear(13), 0.0);
  EXPECT_NEAR(cosine(8), 0.5, 1e-15);
  EXPECT_NEAR(cosine(10), 0.14644660940672624, 1e-15);  // (1 - sqrt(1/2)) / 2
  EXPECT_EQ(constant(100), 1.0);
}

TEST(Warmup, WithoutWarmupStartsAtTheTop) {
  EXPECT_EQ(linear_with_warmup({.num_warmup_steps = 0, .num_training_steps = 10})(0), 1.0);
  EXPECT_EQ(cosine_with_warmup({.num_warmup_steps = 0, .num_training_steps = 10})(0), 1.0);
  const auto two_waves = cosine_with_warmup({.num_warmup_steps = 0, .num_training_steps = 8}, /*num_cycles=*/2.0);
  EXPECT_NEAR(two_waves(2), 0.0, 1e-15);
  EXPECT_NEAR(two_waves(4), 1.0, 1e-15);
}

}  // namespace
}  // namespace lockstep::optim
