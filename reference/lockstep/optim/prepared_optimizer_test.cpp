#include "lockstep/optim/prepared_optimizer.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;

at::Tensor make_parameter() { return at::zeros({1}).set_requires_grad(true); }

void add_gradient(at::Tensor& parameter, double gradient) {
  if (!parameter.grad().defined()) parameter.mutable_grad() = at::zeros({1});
  parameter.mutable_grad() += gradient;
}

/// Steps unless it is told that the gradients overflowed, and writes down what it was asked for.
class FakeScaler final : public GradientScaler {
 public:
  bool overflow = false;
  std::string calls;

  at::Tensor scale(const at::Tensor& loss) override { return loss * 8; }
  void unscale_(torch::optim::Optimizer&) override { calls += "unscale;"; }
  bool step(torch::optim::Optimizer& optimizer, const LossClosure& closure) override {
    calls += closure ? "step with closure;" : "step;";
    if (!optimizer.param_groups()[0].params()[0].grad().defined()) throw AssertionError("no gradient was checked");
    if (!overflow) optimizer.step(closure);
    return !overflow;
  }
  void update() override { calls += "update;"; }
};

/// One parameter at 0 under SGD with rate 1, so that a step takes the gradient away.
struct Training {
  explicit Training(std::shared_ptr<GradientScaler> scaler = nullptr)
      : optimizer(sgd, gradient_state, account, std::move(scaler)) {}

  state::GradientState gradient_state;
  std::shared_ptr<accounting::Account> account = std::make_shared<accounting::Account>(0);
  at::Tensor parameter = make_parameter();
  std::shared_ptr<SGD> sgd = std::make_shared<SGD>(std::vector{parameter}, SGDOptions(1.0));
  PreparedOptimizer optimizer;

  void micro_step(bool sync, double gradient) {
    gradient_state.sync_gradients = sync;
    add_gradient(parameter, gradient);
    optimizer.step();
  }
  [[nodiscard]] double value() const { return parameter.item<double>(); }
  [[nodiscard]] double gradient() const { return parameter.grad().item<double>(); }
};

TEST(ACC_015, ObeysSyncGradientsSetByHand) {
  Training training;
  EXPECT_TRUE(training.gradient_state.sync_gradients);
  training.micro_step(false, 1);
  EXPECT_EQ(training.value(), 0);
  training.micro_step(true, 1);
  EXPECT_EQ(training.value(), -2);
}

TEST(ACC_020, StepAndZeroGradActOnlyWhenGradientsAreComplete) {
  Training training;
  training.micro_step(false, 1);
  training.optimizer.zero_grad();
  EXPECT_EQ(training.value(), 0);
  EXPECT_EQ(training.gradient(), 1);
  training.micro_step(true, 3);
  EXPECT_EQ(training.value(), -4);
  training.optimizer.zero_grad();
  EXPECT_FALSE(training.parameter.grad().defined());
}

TEST(ACC_020, ZeroGradFillsWithZeroesWhenAskedTo) {
  Training training;
  add_gradient(training.parameter, 5);
  training.optimizer.zero_grad(/*set_to_none=*/false);
  ASSERT_TRUE(training.parameter.grad().defined());
  EXPECT_EQ(training.gradient(), 0);
}

// Mean over 2 ranks and 2 micro-steps of 1, 3 and 2, 4 would be 2.5; here the mean over ranks comes in as the gradient.
TEST(ACC_021, ZeroGradBeforeBackwardLosesWhatTheWindowGathered) {
  Training training;
  for (const auto& [sync, gradient] : {std::pair(false, 0.75), std::pair(true, 1.75)}) {
    training.gradient_state.sync_gradients = sync;
    training.optimizer.zero_grad();
    training.micro_step(sync, gradient);
  }
  EXPECT_EQ(training.value(), -1.75);
}

TEST(ACC_022, TheClosureIsPassedOnAndStepReturnsNothing) {
  Training training;
  static_assert(std::is_void_v<decltype(training.optimizer.step())>);
  int calls = 0;
  const auto closure = [&] {
    ++calls;
    training.parameter.mutable_grad() = at::full({1}, 2.0);
    return at::zeros({});
  };
  training.optimizer.step(closure);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(training.value(), -2);
  training.gradient_state.sync_gradients = false;
  training.optimizer.step(closure);
  EXPECT_EQ(calls, 1);
}

TEST(ACC_023, TheScalerStepsAndUpdatesAndMaySkip) {
  const auto scaler = std::make_shared<FakeScaler>();
  Training training(scaler);
  training.micro_step(true, 1);
  EXPECT_EQ(scaler->calls, "step;update;");
  EXPECT_FALSE(training.optimizer.step_was_skipped());
  scaler->overflow = true;
  training.micro_step(true, 1);
  EXPECT_TRUE(training.optimizer.step_was_skipped());
  EXPECT_EQ(training.value(), -1);
  scaler->overflow = false;
  scaler->calls.clear();
  training.optimizer.step([] { return at::zeros({}); });
  EXPECT_EQ(scaler->calls, "step with closure;update;");
  EXPECT_FALSE(training.optimizer.step_was_skipped());
  EXPECT_EQ(training.value(), -3);
}

TEST(ACC_024, MicroStepsWithoutSynchronisationKeepTheLastAnswer) {
  const auto scaler = std::make_shared<FakeScaler>();
  Training training(scaler);
  scaler->overflow = true;
  training.micro_step(true, 1);
  scaler->calls.clear();
  training.micro_step(false, 1);
  EXPECT_TRUE(training.optimizer.step_was_skipped());
  EXPECT_EQ(scaler->calls, "");
}

TEST(ACC_024, WithoutAScalerNoStepIsSkipped) {
  Training training;
  training.micro_step(true, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(training.optimizer.step_was_skipped());
  EXPECT_EQ(training.value(), -std::numeric_limits<double>::infinity());
}

TEST(ACC_025, TheScalersRefusalOfMissingGradientsReachesTheCaller) {
  const auto scaler = std::make_shared<FakeScaler>();
  Training training(scaler);
  EXPECT_THROW(training.optimizer.step(), AssertionError);
  EXPECT_EQ(scaler->calls, "step;");
}

TEST(ACC_027, GroupsDefaultsAndStatePassThrough) {
  Training training;
  auto& optimizer = training.optimizer;
  optimizer.add_param_group({{make_parameter()}, std::make_unique<SGDOptions>(0.25)});
  EXPECT_EQ(training.sgd->param_groups().size(), 2U);
  EXPECT_EQ(optimizer.param_groups()[1].options().get_lr(), 0.25);
  optimizer.param_groups()[0].options().set_lr(0.5);
  EXPECT_EQ(training.sgd->param_groups()[0].options().get_lr(), 0.5);
  EXPECT_EQ(&optimizer.defaults(), &training.sgd->defaults());
  EXPECT_EQ(&optimizer.state(), &training.sgd->state());
  training.micro_step(true, 1);
  EXPECT_EQ(training.value(), -0.5);
}

TEST(ACC_027, SavedStateContinuesInAnotherOptimizer) {
  const state::GradientState gradient_state;
  const auto make = [&gradient_state](const at::Tensor& parameter, double rate) {
    return PreparedOptimizer(
        std::make_shared<torch::optim::AdamW>(std::vector{parameter}, torch::optim::AdamWOptions(rate)),
        gradient_state);
  };
  auto first = make_parameter();
  auto optimizer = make(first, 0.1);
  add_gradient(first, 1);
  optimizer.step();
  std::stringstream stream;
  optimizer.save(stream);

  auto second = first.detach().clone().set_requires_grad(true);
  auto resumed = make(second, 0.7);
  resumed.load(stream);
  EXPECT_EQ(resumed.param_groups()[0].options().get_lr(), 0.1);
  second.mutable_grad() = at::full({1}, -3.0);
  first.mutable_grad() = at::full({1}, -3.0);
  optimizer.step();
  resumed.step();
  EXPECT_EQ(second.item<double>(), first.item<double>());
}

TEST(ACC_027, TrainAndEvalReachAnOptimizerThatHasThem) {
  struct ScheduleFree final : SGD, TrainingMode {
    using SGD::SGD;
    std::string calls;
    void train() override { calls += "train;"; }
    void eval() override { calls += "eval;"; }
  };
  const state::GradientState gradient_state;
  const auto schedule_free = std::make_shared<ScheduleFree>(std::vector{make_parameter()}, SGDOptions(1.0));
  PreparedOptimizer optimizer(schedule_free, gradient_state);
  optimizer.eval();
  optimizer.train();
  EXPECT_EQ(schedule_free->calls, "eval;train;");
  Training plain;
  EXPECT_NO_THROW(plain.optimizer.train());
}

TEST(PreparedOptimizer, TellsTheAccountOfStepsMadeAndSkipped) {
  const auto scaler = std::make_shared<FakeScaler>();
  Training training(scaler);
  std::vector<std::string> seen;
  const auto subscription =
      training.account->subscribe([&seen](const accounting::Stamp& stamp, const accounting::Event& event) {
        const auto& step = std::get<accounting::OptimizerStep>(event);
        std::ostringstream line;
        line << accounting::to_word(stamp.phase) << " " << stamp.step << " " << (step.skipped ? "skipped" : "made");
        for (const auto rate : step.learning_rates) line << " " << rate;
        seen.push_back(line.str());
      });
  training.micro_step(false, 1);
  training.micro_step(true, 1);
  scaler->overflow = true;
  training.optimizer.param_groups()[0].options().set_lr(0.5);
  training.micro_step(true, 1);
  EXPECT_EQ(seen, (std::vector<std::string>{"step 0 made 1", "step 1 skipped 0.5"}));
  EXPECT_EQ(training.account->stamp().step, 1);
  EXPECT_EQ(training.account->stamp().phase, accounting::Phase::other);
}

TEST(PreparedOptimizer, AnObserverDoesNotEndARunWithoutLearningRates) {
  struct NoRate final : torch::optim::Optimizer {
    using Optimizer::Optimizer;
    at::Tensor step(LossClosure) override { return {}; }
  };
  struct NoOptions final : torch::optim::OptimizerCloneableOptions<NoOptions> {};
  const state::GradientState gradient_state;
  const auto account = std::make_shared<accounting::Account>(0);
  PreparedOptimizer optimizer(std::make_shared<NoRate>(std::vector{make_parameter()}, std::make_unique<NoOptions>()),
                              gradient_state, account);
  int seen = 0;
  const auto subscription = account->subscribe([&seen](const accounting::Stamp&, const accounting::Event& event) {
    seen += std::get<accounting::OptimizerStep>(event).learning_rates.empty() ? 1 : 100;
  });
  optimizer.step();
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace lockstep::optim
