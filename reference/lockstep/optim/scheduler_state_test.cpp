#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/composed_schedules.h"
#include "lockstep/optim/learning_rates.h"
#include "lockstep/optim/one_cycle_lr.h"
#include "lockstep/optim/schedules.h"
#include "run_ranks.h"

// A schedule goes on from a saved state as if it had never stopped.
namespace lockstep::optim {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;
using Rates = std::vector<double>;
using OptimizerPtr = std::shared_ptr<torch::optim::Optimizer>;
using Maker = std::function<std::shared_ptr<Scheduler>(const OptimizerPtr&)>;

OptimizerPtr sgd(double rate = 0.5) {
  return std::make_shared<SGD>(std::vector{at::ones({1}).set_requires_grad(true)}, SGDOptions(rate).momentum(0.9));
}

std::shared_ptr<Scheduler> warmed_up_cosine(const OptimizerPtr& optimizer) {
  std::vector<std::shared_ptr<Scheduler>> parts{
      std::make_shared<LinearLr>(optimizer, LinearLrOptions{.start_factor = 0.1, .total_iters = 4}),
      std::make_shared<CosineAnnealingLr>(optimizer, 9)};
  return std::make_shared<SequentialLr>(optimizer, parts, std::vector<std::int64_t>{4});
}

std::shared_ptr<Scheduler> chained(const OptimizerPtr& optimizer) {
  return std::make_shared<ChainedScheduler>(std::vector<std::shared_ptr<Scheduler>>{
      std::make_shared<MultiStepLr>(optimizer, std::vector<std::int64_t>{3, 8, 8}, 0.5),
      std::make_shared<ConstantLr>(optimizer, ConstantLrOptions{.factor = 0.5, .total_iters = 9})});
}

std::vector<Maker> makers() {
  return {[](const auto& optimizer) { return std::make_shared<StepLr>(optimizer, 3, 0.5); },
          [](const auto& optimizer) { return std::make_shared<ExponentialLr>(optimizer, 0.9); },
          [](const auto& optimizer) {
            return std::make_shared<PolynomialLr>(optimizer, PolynomialLrOptions{.total_iters = 11, .power = 2.0});
          },
          [](const auto& optimizer) {
            return std::make_shared<LambdaLr>(optimizer, [](std::int64_t p) { return 1.0 / (1.0 + double(p)); });
          },
          [](const auto& optimizer) {
            return std::make_shared<OneCycleLr>(optimizer, OneCycleOptions{.max_lr = 2.0, .total_steps = 14});
          },
          warmed_up_cosine,
          chained};
}

TEST(SchedulerState, ARestoredScheduleGoesOnAlike) {
  for (const auto& make : makers()) {
    const auto optimizer = sgd(), resumed_optimizer = sgd();
    const auto schedule = make(optimizer), resumed = make(resumed_optimizer);
    for (int i = 0; i < 6; ++i) schedule->step();
    resumed->load_state_dict(schedule->state_dict());
    set_learning_rates(*resumed_optimizer, learning_rates(*optimizer));  // as the optimizer's own state does
    EXPECT_EQ(resumed->last_epoch(), 6);
    EXPECT_EQ(resumed->step_count(), schedule->step_count());
    EXPECT_EQ(resumed->state_dict(), schedule->state_dict());
    for (int i = 0; i < 7; ++i) {
      schedule->step();
      resumed->step();
      EXPECT_EQ(learning_rates(*resumed_optimizer), learning_rates(*optimizer)) << "step " << i;
    }
  }
}

TEST(SchedulerState, SettingsComeWithIt) {
  const auto optimizer = sgd(1.0), other = sgd(1.0);
  const StepLr schedule(optimizer, 2, 0.1);
  StepLr differs(other, 7, 0.5);
  differs.load_state_dict(schedule.state_dict());
  differs.step();
  differs.step();
  EXPECT_DOUBLE_EQ(learning_rates(*other)[0], 0.1);
}

TEST(SchedulerState, HasPyTorchsNames) {
  StepLr schedule(sgd(1.0), 2, 0.1);
  schedule.step();
  const auto state = schedule.state_dict();
  EXPECT_EQ(state["step_size"].integer(), 2);
  EXPECT_EQ(state["gamma"].real(), 0.1);
  EXPECT_EQ(state["base_lrs"], Value::list({1.0}));
  EXPECT_EQ(state["last_epoch"].integer(), 1);
  EXPECT_EQ(state["_step_count"].integer(), 2);
  EXPECT_EQ(state["_last_lr"], Value::list({1.0}));
}

TEST(SchedulerState, WhatIsNoStateIsRefused) {
  StepLr schedule(sgd(), 2);
  EXPECT_THROW(schedule.load_state_dict(Value::dict({{"gamma", 0.5}})), KeyError);
  EXPECT_THROW(schedule.load_state_dict(Value::dict({{"last_epoch", "three"}})), TypeError);
  const auto composed = warmed_up_cosine(sgd());
  EXPECT_THROW(composed->load_state_dict(schedule.state_dict()), KeyError);
  auto too_few = composed->state_dict();
  too_few.set("_schedulers", Value::list({schedule.state_dict()}));
  EXPECT_THROW(composed->load_state_dict(too_few), InvalidArgument);
}

TEST(SchedulerState, WhatCannotBeReadToItsEndChangesNothing) {
  StepLr schedule(sgd(), 2);
  const auto before = schedule.state_dict();
  auto state = StepLr(sgd(), 7, 0.5).state_dict();
  state.set("last_epoch", 5);
  state.set("gamma", "half");
  const auto text = test::message_of<TypeError>([&] { schedule.load_state_dict(state); });
  EXPECT_NE(text.find("load_state_dict('gamma')"), std::string::npos) << text;
  EXPECT_EQ(schedule.state_dict(), before);

  const auto composed = warmed_up_cosine(sgd());
  const auto whole = composed->state_dict();
  auto half = warmed_up_cosine(sgd())->state_dict();
  half.set("last_epoch", 3);
  auto parts = half["_schedulers"].items();
  parts[0].set("last_epoch", 3);
  parts[1].set("last_epoch", "three");
  half.set("_schedulers", Value::list(parts));
  EXPECT_THROW(composed->load_state_dict(half), TypeError);
  EXPECT_EQ(composed->state_dict(), whole);
}

}  // namespace
}  // namespace lockstep::optim
