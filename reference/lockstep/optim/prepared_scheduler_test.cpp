#include "lockstep/optim/prepared_scheduler.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/optim/sgd.h>

#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/optim/learning_rates.h"

namespace lockstep::optim {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;
using Positions = std::vector<std::int64_t>;
using Rates = std::vector<double>;

std::shared_ptr<SGD> make_sgd() {
  return std::make_shared<SGD>(std::vector{at::zeros({1}).set_requires_grad(true)}, SGDOptions(1.0));
}

double one_over_next(std::int64_t epoch) { return 1.0 / static_cast<double>(1 + epoch); }

/// A schedule that ends, as a one-cycle schedule does, and minds being driven further.
class Ending final : public Scheduler {
 public:
  explicit Ending(std::int64_t total) : total_(total) {}
  std::vector<double> last_learning_rates() const override { return {1.0}; }
  std::optional<std::int64_t> total_steps() const override { return total_; }

 private:
  void advance(std::optional<double>) override {
    if (last_epoch() > total_) throw InvalidArgument("a step beyond the schedule's end");
  }
  std::int64_t total_;
};

/// Skips the next steps when told to.
class FakeScaler final : public GradientScaler {
 public:
  bool overflow = false;
  at::Tensor scale(const at::Tensor& loss) override { return loss; }
  void unscale_(torch::optim::Optimizer&) override {}
  bool step(torch::optim::Optimizer&, const LossClosure&) override { return !overflow; }
  void update() override {}
};

/// An optimizer whose step is skipped on request, and a schedule of 1/(1+position) that follows it.
struct Training {
  explicit Training(const PreparedSchedulerOptions& options = {}, std::shared_ptr<Scheduler> other = nullptr)
      : scheduler(other ? std::move(other) : std::make_shared<LambdaLr>(sgd, one_over_next), {optimizer},
                  gradient_state, account, options) {}

  void micro_step(bool sync, bool overflow = false) {
    gradient_state.sync_gradients = sync;
    scaler->overflow = overflow;
    optimizer->step();
    scheduler.step();
  }
  Positions positions_of(int steps) {
    Positions positions;
    for (int i = 0; i < steps; ++i) {
      micro_step(true);
      positions.push_back(scheduler.last_epoch());
    }
    return positions;
  }

  state::GradientState gradient_state;
  std::shared_ptr<accounting::Account> account = std::make_shared<accounting::Account>(0);
  std::shared_ptr<SGD> sgd = make_sgd();
  std::shared_ptr<FakeScaler> scaler = std::make_shared<FakeScaler>();
  std::shared_ptr<PreparedOptimizer> optimizer =
      std::make_shared<PreparedOptimizer>(sgd, gradient_state, nullptr, scaler);
  PreparedScheduler scheduler;
};

TEST(ACC_014, AdjustSchedulerCountsMicroStepsWithoutMovingTheSchedule) {
  Training training({}, std::make_shared<Ending>(3));
  training.gradient_state.adjust_scheduler = true;
  training.micro_step(false);
  EXPECT_EQ(training.scheduler.last_epoch(), 0);
  EXPECT_EQ(training.scheduler.scheduler()->step_count(), 2);
  EXPECT_EQ(training.positions_of(4), (Positions{1, 2, 2, 2}));  // one of the three was counted away
}

TEST(ACC_014, WithoutAdjustSchedulerMicroStepsDoNotCount) {
  Training training;
  training.micro_step(false);
  EXPECT_EQ(training.scheduler.scheduler()->step_count(), 1);
}

TEST(ACC_030, WithoutTheOptimizerEveryCallIsAStep) {
  Training training({.step_with_optimizer = false, .world_size = 4});
  training.micro_step(false);
  training.micro_step(true);
  training.micro_step(true, /*overflow=*/true);
  EXPECT_EQ(training.scheduler.last_epoch(), 3);
  EXPECT_DOUBLE_EQ(training.scheduler.last_learning_rates()[0], 0.25);
}

TEST(ACC_031, AnOptimizerStepIsWorldSizeStepsOfTheSchedule) {
  for (const auto& [world_size, split_batches, rate] : {std::tuple(1, false, 0.5), std::tuple(2, false, 1.0 / 3),
                                                        std::tuple(4, false, 0.2), std::tuple(4, true, 0.5)}) {
    Training training({.split_batches = split_batches, .world_size = world_size});
    training.micro_step(true);
    EXPECT_DOUBLE_EQ(training.scheduler.last_learning_rates()[0], rate)
        << world_size << " ranks, split " << split_batches;
  }
}

TEST(ACC_031, NoStepWithoutSynchronisation) {
  Training training({.world_size = 2});
  training.micro_step(false);
  EXPECT_EQ(training.scheduler.last_epoch(), 0);
  training.micro_step(true);
  EXPECT_EQ(training.scheduler.last_epoch(), 2);
}

// Case D5: the first step overflows; the rate stays, and then goes on as if it had not been.
TEST(ACC_031, NoStepWhenAnyOptimizerSkipped) {
  Training training({.world_size = 2});
  training.micro_step(true, /*overflow=*/true);
  EXPECT_TRUE(training.optimizer->step_was_skipped());
  EXPECT_DOUBLE_EQ(training.scheduler.last_learning_rates()[0], 1.0);
  training.micro_step(true);
  EXPECT_DOUBLE_EQ(training.scheduler.last_learning_rates()[0], 1.0 / 3);

  const auto steady = std::make_shared<PreparedOptimizer>(make_sgd(), training.gradient_state);
  PreparedScheduler of_both(std::make_shared<LambdaLr>(steady->optimizer(), one_over_next),
                            {steady, training.optimizer}, training.gradient_state);
  training.scaler->overflow = true;
  training.optimizer->step();
  of_both.step();
  EXPECT_EQ(of_both.last_epoch(), 0);
}

/// Batches per rank of an even loader of 40 samples in batches of 2, windows of 4: where they synchronise.
std::vector<bool> syncs_of_pass(int world_size) {
  const int batches = (40 + 2 * world_size - 1) / (2 * world_size);
  std::vector<bool> syncs;
  for (int i = 1; i <= batches; ++i) syncs.push_back(i % 4 == 0 || i == batches);
  return syncs;
}

// Case D1: linear decay over 20 moves with optimizer steps, not with micro-steps.
TEST(ACC_031, LinearDecayFollowsOptimizerSteps) {
  const auto decay = [](std::int64_t epoch) { return 1.0 - static_cast<double>(epoch) / 20; };
  for (const auto& [world_size, expected] : {std::pair(2, Rates{0.9, 0.8, 0.7}), std::pair(3, Rates{0.85, 0.7})}) {
    const auto sgd = make_sgd();
    state::GradientState gradient_state;
    const auto account = std::make_shared<accounting::Account>(0);
    const auto optimizer = std::make_shared<PreparedOptimizer>(sgd, gradient_state, account);
    PreparedScheduler scheduler(std::make_shared<LambdaLr>(sgd, decay), {optimizer}, gradient_state, account,
                                {.world_size = world_size});
    Rates rates;
    for (const auto sync : syncs_of_pass(world_size)) {
      gradient_state.sync_gradients = sync;
      optimizer->step();
      scheduler.step();
      if (sync) rates.push_back(learning_rates(*sgd)[0]);
    }
    EXPECT_EQ(account->stamp().step, static_cast<std::int64_t>(expected.size())) << world_size << " ranks";
    EXPECT_EQ(scheduler.last_epoch(), 6) << world_size << " ranks";
    ASSERT_EQ(rates.size(), expected.size());
    for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-12) << world_size << " ranks";
  }
}

TEST(ACC_032, AScheduleIsNotDrivenBeyondItsEnd) {
  Training training({.world_size = 3}, std::make_shared<Ending>(7));
  EXPECT_EQ(training.positions_of(4), (Positions{3, 6, 7, 7}));
}

TEST(ACC_032, WithSplitBatchesTheScheduleItselfMindsItsEnd) {
  Training training({.split_batches = true, .world_size = 3}, std::make_shared<Ending>(3));
  EXPECT_EQ(training.positions_of(3), (Positions{1, 2, 3}));
  EXPECT_THROW(training.micro_step(true), InvalidArgument);
}

TEST(ACC_033, TheOptimizerItWasMadeWithOrElseAll) {
  const state::GradientState gradient_state;
  const auto first = std::make_shared<const PreparedOptimizer>(make_sgd(), gradient_state);
  const auto second = std::make_shared<const PreparedOptimizer>(make_sgd(), gradient_state);
  const std::vector all{first, second};
  EXPECT_EQ(associated_optimizers(LambdaLr(second->optimizer(), one_over_next), all), std::vector{second});
  EXPECT_EQ(associated_optimizers(LambdaLr(make_sgd(), one_over_next), all), all);
  EXPECT_EQ(associated_optimizers(Ending(3), all), all);
}

TEST(ACC_033, APlateauCountsWorldSizeTimesPerCall) {
  using Plateau = torch::optim::ReduceLROnPlateauScheduler;
  const auto sgd = make_sgd();
  const state::GradientState gradient_state;
  const auto plateau = from_torch(std::make_shared<Plateau>(*sgd, Plateau::min, 0.5F, /*patience=*/2), sgd);
  PreparedScheduler scheduler(plateau, {}, gradient_state, nullptr, {.world_size = 2});
  scheduler.step(1.0);  // the best, and the first that is no better
  EXPECT_EQ(scheduler.last_learning_rates(), Rates{1.0});
  scheduler.step(1.0);  // the second, and the third
  EXPECT_EQ(scheduler.last_learning_rates(), Rates{0.5});
  EXPECT_EQ(scheduler.last_epoch(), 4);
}

TEST(PreparedScheduler, OneEventForEachCallThatMovedTheSchedule) {
  Training training({.world_size = 3}, std::make_shared<Ending>(4));
  int seen = 0;
  const auto subscription =
      training.account->subscribe([&seen](const accounting::Stamp&, const accounting::Event& event) {
        if (std::get<accounting::SchedulerStep>(event).learning_rates == Rates{1.0}) ++seen;
      });
  training.micro_step(false);
  training.micro_step(true, /*overflow=*/true);
  EXPECT_EQ(seen, 0);
  training.positions_of(3);  // 3, 4, and nothing more to do
  EXPECT_EQ(seen, 2);
}

TEST(PreparedScheduler, WantsAPositiveWorldSize) {
  const state::GradientState gradient_state;
  EXPECT_THROW(PreparedScheduler(std::make_shared<Ending>(1), {}, gradient_state, nullptr, {.world_size = 0}),
               InvalidArgument);
}

}  // namespace
}  // namespace lockstep::optim
