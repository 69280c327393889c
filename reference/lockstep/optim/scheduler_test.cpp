#include "lockstep/optim/scheduler.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/optim/learning_rates.h"

namespace lockstep::optim {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;
using Rates = std::vector<double>;

std::shared_ptr<SGD> sgd_with(const Rates& rates) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const auto rate : rates) {
    groups.emplace_back(std::vector{at::ones({1}).set_requires_grad(true)}, std::make_unique<SGDOptions>(rate));
  }
  return std::make_shared<SGD>(groups, SGDOptions(1.0));
}

// Expected numbers in this file were computed by PyTorch 2.11.
TEST(LambdaLr, GivesPyTorchsRatesPerGroup) {
  const auto sgd = sgd_with({0.1, 0.02});
  LambdaLr scheduler(sgd, {[](std::int64_t epoch) { return std::pow(0.95, epoch); },
                           [](std::int64_t epoch) { return 1.0 / static_cast<double>(1 + epoch); }});
  const std::vector<Rates> expected{
      {0.1, 0.02}, {0.095, 0.01}, {0.09025, 0.006666666666666666}, {0.0857375, 0.005}, {0.081450625, 0.004}};
  for (std::size_t position = 0; position < expected.size(); ++position) {
    if (position > 0) scheduler.step();
    for (std::size_t group = 0; group < 2; ++group) {
      EXPECT_DOUBLE_EQ(scheduler.last_learning_rates()[group], expected[position][group]) << "position " << position;
    }
    EXPECT_EQ(learning_rates(*sgd), scheduler.last_learning_rates());
  }
  EXPECT_EQ(scheduler.last_epoch(), 4);
  EXPECT_EQ(scheduler.step_count(), 5);
  EXPECT_FALSE(scheduler.total_steps());
}

TEST(LambdaLr, AppliesPositionZeroWhenMade) {
  const auto sgd = sgd_with({0.5});
  const LambdaLr scheduler(sgd, [](std::int64_t epoch) { return static_cast<double>(epoch + 1) / 4; });
  EXPECT_EQ(learning_rates(*sgd), Rates{0.125});
  EXPECT_EQ(scheduler.optimizer(), sgd.get());
}

TEST(LambdaLr, OneLambdaServesAllGroups) {
  const auto sgd = sgd_with({1.0, 2.0, 4.0});
  LambdaLr scheduler(sgd, [](std::int64_t epoch) { return epoch == 0 ? 1.0 : 0.5; });
  scheduler.step();
  EXPECT_EQ(learning_rates(*sgd), (Rates{0.5, 1.0, 2.0}));
}

TEST(LambdaLr, WantsALambdaForEachGroup) {
  EXPECT_THROW(LambdaLr(sgd_with({1.0, 1.0}), std::vector<LrLambda>{[](std::int64_t) { return 1.0; }}),
               InvalidArgument);
}

TEST(LambdaLr, LeavesGroupsThatCameLaterAlone) {
  const auto sgd = sgd_with({1.0});
  LambdaLr scheduler(sgd, [](std::int64_t) { return 0.5; });
  sgd->add_param_group({{at::ones({1}).set_requires_grad(true)}, std::make_unique<SGDOptions>(3.0)});
  scheduler.step();
  EXPECT_EQ(scheduler.last_learning_rates(), (Rates{0.5, 3.0}));
}

TEST(Scheduler, CountStepCountsWithoutMoving) {
  const auto sgd = sgd_with({1.0});
  LambdaLr scheduler(sgd, [](std::int64_t epoch) { return 1.0 / static_cast<double>(1 + epoch); });
  scheduler.count_step();
  EXPECT_EQ(scheduler.step_count(), 2);
  EXPECT_EQ(scheduler.last_epoch(), 0);
  EXPECT_EQ(learning_rates(*sgd), Rates{1.0});
}

// One step later than Python's StepLR, which would give .1 in the second step.
TEST(FromTorch, HasLibTorchsNumbers) {
  const auto sgd = sgd_with({1.0});
  const auto scheduler = from_torch(std::make_shared<torch::optim::StepLR>(*sgd, 2, 0.1), sgd);
  EXPECT_EQ(scheduler->last_learning_rates(), Rates{1.0});
  Rates rates;
  for (int i = 0; i < 4; ++i) {
    scheduler->step();
    rates.push_back(scheduler->last_learning_rates()[0]);
  }
  EXPECT_DOUBLE_EQ(rates[1], 1.0);
  EXPECT_DOUBLE_EQ(rates[2], 0.1);
  EXPECT_DOUBLE_EQ(rates[3], 0.1);
  EXPECT_EQ(scheduler->last_epoch(), 4);
  EXPECT_EQ(scheduler->optimizer(), sgd.get());
}

TEST(FromTorch, ReadsTheRatesOfAnOptimizerItWasNotGiven) {
  const auto sgd = sgd_with({0.3, 0.6});
  const auto scheduler = from_torch(std::make_shared<torch::optim::StepLR>(*sgd, 2, 0.1));
  EXPECT_EQ(scheduler->last_learning_rates(), (Rates{0.3, 0.6}));
  EXPECT_EQ(scheduler->optimizer(), nullptr);
}

TEST(FromTorch, APlateauWantsItsMetric) {
  const auto sgd = sgd_with({1.0});
  using Plateau = torch::optim::ReduceLROnPlateauScheduler;
  const auto scheduler = from_torch(std::make_shared<Plateau>(*sgd, Plateau::min, 0.5F, /*patience=*/0), sgd);
  EXPECT_THROW(scheduler->step(), InvalidArgument);
  scheduler->step(1.0);
  EXPECT_EQ(scheduler->last_learning_rates(), Rates{1.0});
  scheduler->step(1.0);
  EXPECT_EQ(scheduler->last_learning_rates(), Rates{0.5});
}

}  // namespace
}  // namespace lockstep::optim
