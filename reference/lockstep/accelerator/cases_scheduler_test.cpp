// Failures from the field, as small inputs: schedules among ranks, micro-steps and skipped steps.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/accelerator/training_test_support.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/optim/learning_rates.h"
#include "lockstep/optim/schedules.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using data::test::Ids;
using test::run_thread_ranks;
using test::Weight;
using torch::optim::SGD;
using Rates = std::vector<double>;

TEST(CaseD1, TheSchedulerMovesWithTheOptimizerAndNotWithMicroSteps) {
  for (const auto& [world, expected] : {std::pair(2, Rates{0.9, 0.8, 0.7}), std::pair(3, Rates{0.85, 0.7})}) {
    run_thread_ranks(world, [&expected = expected] {
      Accelerator accelerator({.gradient_accumulation_steps = 4});
      auto [model, loader] =
          accelerator.prepare(std::make_shared<Weight>(), data::DataLoader(Ids{40}, {.batch_size = 2}));
      const auto sgd = std::make_shared<SGD>(model->parameters(), 1.0);
      auto [optimizer, scheduler] = accelerator.prepare(
          sgd, std::make_shared<optim::LambdaLr>(
                   sgd, [](std::int64_t position) { return 1.0 - static_cast<double>(position) / 20; }));
      Rates rates;
      for ([[maybe_unused]] const Value& batch : *loader) {
        const auto window = accelerator.accumulate(model);
        accelerator.backward(model(at::full({}, 1.0)).sum());
        optimizer->step();
        scheduler->step();
        optimizer->zero_grad();
        if (accelerator.sync_gradients()) rates.push_back(optim::learning_rates(*sgd)[0]);
      }
      EXPECT_EQ(scheduler->last_epoch(), 6);
      ASSERT_EQ(rates.size(), expected.size());
      for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-12);
    });
  }
}

/// A cosine over 100 steps on 4 ranks, each of which takes `num_steps` optimizer steps. @return the rate after each
Rates cosine_on_4_ranks(bool is_prepared, int num_steps) {
  Rates rates;
  run_thread_ranks(4, [&] {
    Accelerator accelerator;
    const auto net = std::make_shared<Weight>();
    const auto sgd = std::make_shared<SGD>(net->parameters(), 1.0);
    const auto cosine = std::make_shared<optim::CosineAnnealingLr>(sgd, /*t_max=*/100);
    const auto optimizer = accelerator.prepare(sgd);
    const auto prepared = is_prepared ? accelerator.prepare(cosine) : nullptr;
    for (int step = 0; step < num_steps; ++step) {
      optimizer->step();
      prepared ? prepared->step() : cosine->step();
      if (accelerator.is_main_process()) rates.push_back(optim::learning_rates(*sgd)[0]);
    }
  });
  return rates;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(CaseD3, AScheduleInOptimizerStepsThatIsPreparedWarnsWhenItEndsTooEarly) {
  testing::internal::CaptureStderr();
  const auto until_its_end = cosine_on_4_ranks(/*is_prepared=*/true, 25);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NEAR(until_its_end.back(), 0, 1e-12);
  testing::internal::CaptureStderr();
  cosine_on_4_ranks(/*is_prepared=*/true, 30);
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(said, "the schedule of 100 steps has ended after 25 optimizer steps"), 4U) << "once a rank: " << said;
  EXPECT_NE(said.find("make it for 400 steps"), std::string::npos) << said;
}

TEST(CaseD3, LeftUnpreparedItReachesZeroAtItsLastStep) {
  testing::internal::CaptureStderr();
  const auto rates = cosine_on_4_ranks(/*is_prepared=*/false, 100);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NEAR(rates[24], (1 + std::sqrt(0.5)) / 2, 1e-9) << "a quarter of the way";
  EXPECT_NEAR(rates[99], 0, 1e-9);
}

TEST(CaseD5, AStepThatOverflowSkippedDoesNotMoveTheSchedule) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.mixed_precision = "fp16"});
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    const auto sgd = std::make_shared<SGD>(model->parameters(), 1.0);
    auto [optimizer, scheduler] = accelerator.prepare(
        sgd, std::make_shared<optim::LambdaLr>(
                 sgd, [](std::int64_t position) { return 1.0 / (1.0 + static_cast<double>(position)); }));
    EXPECT_EQ(accelerator.scaler()->get_scale(), 65536);
    const auto rate_after = [&, &optimizer = optimizer, &scheduler = scheduler](double gradient) {
      accelerator.backward(model(at::full({}, gradient)).sum());
      optimizer->step();
      scheduler->step();
      optimizer->zero_grad();
      return optim::learning_rates(*sgd)[0];
    };
    // On one rank alone: the others learn of it by the reduced gradient, and all skip.
    const double first = accelerator.is_main_process() ? std::numeric_limits<double>::infinity() : 1.0;
    EXPECT_EQ(rate_after(first), 1.0);
    EXPECT_TRUE(accelerator.optimizer_step_was_skipped());
    EXPECT_EQ(scheduler->last_epoch(), 0);
    EXPECT_EQ(rate_after(1), 1.0 / 3);
    EXPECT_FALSE(accelerator.optimizer_step_was_skipped());
    EXPECT_EQ(rate_after(1), 1.0 / 5);
  });
}

}  // namespace
}  // namespace lockstep
