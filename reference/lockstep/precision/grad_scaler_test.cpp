#include "lockstep/precision/grad_scaler.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <limits>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/launch/thread_launcher.h"
#include "lockstep/state/partial_state.h"
#include "run_ranks.h"

namespace lockstep::precision {
namespace {

using torch::optim::SGD;
using torch::optim::SGDOptions;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A parameter at 0 under SGD with rate 1, so that a step takes the gradient away.
struct Trained {
  at::Tensor parameter = at::zeros({1}).set_requires_grad(true);
  SGD optimizer{std::vector{parameter}, SGDOptions(1.0)};

  /// Adds `gradient`, times the scale of the loss.
  void backward(GradScaler& scaler, double gradient) const { scaler.scale((parameter * gradient).sum()).backward(); }
  [[nodiscard]] double value() const { return parameter.item<double>(); }
  [[nodiscard]] double gradient() const { return parameter.grad().item<double>(); }
};

/// One whole iteration. @return whether the step was made
bool iterate(GradScaler& scaler, Trained& trained, double gradient) {
  trained.optimizer.zero_grad();
  trained.backward(scaler, gradient);
  const bool stepped = scaler.step(trained.optimizer);
  scaler.update();
  return stepped;
}

TEST(AMP_007, DefaultsArePyTorchs) {
  const GradScaler scaler;
  EXPECT_TRUE(scaler.is_enabled());
  EXPECT_EQ(scaler.get_scale(), 65536);
  const auto state = scaler.state_dict();
  EXPECT_EQ(state["growth_factor"].number(), 2);
  EXPECT_EQ(state["backoff_factor"].number(), 0.5);
  EXPECT_EQ(state["growth_interval"].integer(), 2000);
}

TEST(AMP_007, TheScaleGrowsAfterEachIntervalOfGoodSteps) {
  GradScaler scaler({.init_scale = 4, .growth_interval = 2});
  Trained trained;
  std::vector<double> scales;
  for (int step = 0; step < 4; ++step) {
    EXPECT_TRUE(iterate(scaler, trained, 1));
    scales.push_back(scaler.get_scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{4, 8, 8, 16}));
  EXPECT_EQ(trained.value(), -4);
}

TEST(AMP_007, AnOverflowStartsTheIntervalAnew) {
  GradScaler scaler({.init_scale = 4, .growth_factor = 3, .backoff_factor = 0.25, .growth_interval = 2});
  Trained trained;
  std::vector<double> scales;
  for (const double gradient : {1.0, kInfinity, 1.0, 1.0}) {
    iterate(scaler, trained, gradient);
    scales.push_back(scaler.get_scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{4, 1, 1, 3}));
}

TEST(AMP_008, TheLossIsMultipliedInFloat32) {
  GradScaler scaler;
  const auto loss = at::scalar_tensor(2.0, at::kHalf);
  EXPECT_EQ(scaler.scale(loss).item<float>(), 131072);
  const auto p = at::scalar_tensor(1.0).set_requires_grad(true);
  scaler.scale(p * 2).backward();
  EXPECT_EQ(p.grad().item<float>(), 131072);
}

TEST(ACC_023, AnOverflowSkipsTheStepAndHalvesTheScale) {
  for (const double bad : {kInfinity, -kInfinity, kNan}) {
    GradScaler scaler;
    Trained trained;
    EXPECT_TRUE(iterate(scaler, trained, 1));
    EXPECT_FALSE(iterate(scaler, trained, bad));
    EXPECT_EQ(trained.value(), -1);
    EXPECT_EQ(scaler.get_scale(), 32768);
    EXPECT_TRUE(iterate(scaler, trained, 1));
    EXPECT_EQ(trained.value(), -2);
  }
}

TEST(ACC_025, AStepWithoutAnyGradientIsRefused) {
  GradScaler scaler;
  Trained trained;
  EXPECT_THROW(scaler.step(trained.optimizer), AssertionError);
  trained.backward(scaler, 1);  // it was as if nobody had asked
  EXPECT_TRUE(scaler.step(trained.optimizer));
  EXPECT_EQ(trained.value(), -1);
}

// Scale 8: the second optimizer would be unscaled twice and move by 0.125.
TEST(ACC_026, TwoOptimizersShareOneUpdatePerIteration) {
  GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  Trained first;
  Trained second;
  scaler.share_with(first.optimizer);
  scaler.share_with(second.optimizer);
  std::vector<double> scales;
  for (int step = 0; step < 4; ++step) {
    for (auto* trained : {&first, &second}) trained->optimizer.zero_grad();
    first.backward(scaler, 1);
    second.backward(scaler, 1);
    for (auto* trained : {&first, &second}) scaler.unscale_(trained->optimizer);
    for (auto* trained : {&first, &second}) {
      scaler.step(trained->optimizer);
      scaler.update();
    }
    scales.push_back(scaler.get_scale());
  }
  EXPECT_EQ(first.value(), -4);
  EXPECT_EQ(second.value(), -4);
  EXPECT_EQ(scales, (std::vector<double>{8, 16, 16, 32}));
}

TEST(ACC_026, EachOptimizerSkipsOnItsOwnAndOneOverflowIsEnough) {
  GradScaler scaler({.init_scale = 8});
  Trained first;
  Trained second;
  scaler.share_with(first.optimizer);
  scaler.share_with(second.optimizer);
  first.backward(scaler, kInfinity);
  second.backward(scaler, 1);
  EXPECT_FALSE(scaler.step(first.optimizer));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 8) << "the second one's gradients still carry it";
  EXPECT_TRUE(scaler.step(second.optimizer));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 4);
  EXPECT_EQ(second.value(), -1);
}

// Two players: one is trained in every iteration, the other in each third.
TEST(ACC_026, AnOptimizerThatRestsHoldsNobodyUp) {
  GradScaler scaler({.init_scale = 8, .growth_interval = 1});
  Trained often;
  Trained seldom;
  scaler.share_with(often.optimizer);
  scaler.share_with(seldom.optimizer);
  for (int step = 1; step <= 6; ++step) {
    iterate(scaler, often, 1);
    if (step % 3 == 0) iterate(scaler, seldom, 1);
  }
  EXPECT_EQ(often.value(), -6);
  EXPECT_EQ(seldom.value(), -2);
  EXPECT_EQ(scaler.get_scale(), 8 * 64) << "one update per iteration";
}

TEST(ACC_026, GradientsAreDividedByTheScaleTheyWereMultipliedBy) {
  GradScaler scaler({.init_scale = 8, .growth_interval = 1});
  Trained often;
  Trained seldom;
  scaler.share_with(often.optimizer);
  scaler.share_with(seldom.optimizer);
  iterate(scaler, often, 1);
  often.optimizer.zero_grad();
  often.backward(scaler, 1);
  seldom.backward(scaler, 1);
  scaler.step(often.optimizer);  // ends the first iteration: the scale becomes 16, the gradients carry 8
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 16);
  scaler.step(seldom.optimizer);
  scaler.update();
  EXPECT_EQ(often.value(), -2);
  EXPECT_EQ(seldom.value(), -1);
  EXPECT_EQ(scaler.get_scale(), 32);
}

TEST(ACC_042, UnscalingTwiceBeforeAStepIsRefused) {
  GradScaler scaler({.init_scale = 8});
  Trained trained;
  trained.backward(scaler, 3);
  scaler.unscale_(trained.optimizer);
  EXPECT_EQ(trained.gradient(), 3);
  const auto text = test::message_of<RuntimeError>([&] { scaler.unscale_(trained.optimizer); });
  EXPECT_NE(text.find("already been called"), std::string::npos) << text;
  scaler.step(trained.optimizer);
  EXPECT_EQ(trained.value(), -3) << "unscaled once";
  scaler.update();
  trained.optimizer.zero_grad();
  trained.backward(scaler, 3);
  EXPECT_NO_THROW(scaler.unscale_(trained.optimizer));
}

TEST(GradScaler, UnscalingOrSteppingAfterAStepWithoutABackwardIsRefused) {
  GradScaler scaler;
  Trained trained;
  Trained other;
  scaler.share_with(trained.optimizer);
  scaler.share_with(other.optimizer);
  trained.backward(scaler, 1);
  scaler.step(trained.optimizer);
  scaler.update();  // waits for the other
  EXPECT_THROW(scaler.unscale_(trained.optimizer), RuntimeError);
  EXPECT_THROW(scaler.step(trained.optimizer), RuntimeError);
  EXPECT_EQ(trained.value(), -1);
}

TEST(GradScaler, ParametersInFloat16AreRefused) {
  GradScaler scaler;
  auto parameter = at::zeros({1}, at::kHalf).set_requires_grad(true);
  SGD optimizer(std::vector{parameter}, SGDOptions(1.0));
  parameter.mutable_grad() = at::ones({1}, at::kHalf);
  EXPECT_THROW(scaler.unscale_(optimizer), InvalidArgument);
}

TEST(GradScaler, AClosureIsRefused) {
  GradScaler scaler;
  Trained trained;
  EXPECT_THROW(scaler.step(trained.optimizer, [] { return at::zeros({}); }), NotSupported);
}

TEST(GradScaler, GradientsOfSeveralDtypesAreUnscaled) {
  GradScaler scaler({.init_scale = 8});
  std::vector<at::Tensor> parameters;
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    parameters.push_back(at::zeros({2}, dtype).set_requires_grad(true));
    parameters.back().mutable_grad() = at::full({2}, 8.0, dtype);
  }
  SGD optimizer(parameters, SGDOptions(1.0));
  EXPECT_TRUE(scaler.step(optimizer));
  for (const auto& parameter : parameters) EXPECT_EQ(parameter[1].item<double>(), -1) << parameter.scalar_type();
}

TEST(KW_012, AScalerThatIsNotEnabledLeavesEverythingAlone) {
  GradScaler scaler({.enabled = false});
  Trained trained;
  EXPECT_TRUE(iterate(scaler, trained, 2));
  EXPECT_EQ(trained.value(), -2);
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(iterate(scaler, trained, kInfinity)) << "nobody looks";
  EXPECT_EQ(scaler.state_dict().size(), 0U);
  EXPECT_NO_THROW(scaler.load_state_dict(Value::dict({})));
}

TEST(KW_012, WhatCannotScaleIsRefused) {
  const std::vector<config::GradScalerKwargs> refused = {
      {.growth_factor = 1},   {.growth_factor = kNan},   {.backoff_factor = 1}, {.backoff_factor = 0},
      {.backoff_factor = -1}, {.init_scale = 0},         {.init_scale = -2},    {.init_scale = kNan},
      {.init_scale = 1e39},   {.init_scale = kInfinity}, {.growth_interval = 0}};
  for (std::size_t i = 0; i < refused.size(); ++i) EXPECT_THROW(GradScaler{refused[i]}, AssertionError) << i;
}

TEST(GradScaler, ASavedStateGoesOn) {
  GradScaler first({.init_scale = 4, .growth_interval = 3});
  Trained trained;
  for (int step = 0; step < 5; ++step) iterate(first, trained, 1);
  const auto state = first.state_dict();
  EXPECT_EQ(state["scale"].number(), 8);
  EXPECT_EQ(state["_growth_tracker"].integer(), 2);
  GradScaler second;
  second.load_state_dict(state);
  EXPECT_EQ(second.state_dict(), state);
  iterate(second, trained, 1);
  EXPECT_EQ(second.get_scale(), 16);
  EXPECT_THROW(second.load_state_dict(Value::dict({})), RuntimeError);
}

TEST(GradScaler, AStateThatIsNoneChangesNothing) {
  GradScaler scaler;
  const auto before = scaler.state_dict();
  auto negative = GradScaler({.init_scale = 4, .growth_factor = 3}).state_dict();
  negative.set("scale", -1.0);
  EXPECT_THROW(scaler.load_state_dict(negative), AssertionError);
  EXPECT_THROW(scaler.load_state_dict(Value::dict({{"growth_factor", 3.0}, {"scale", 4.0}})), KeyError);
  EXPECT_EQ(scaler.state_dict(), before);
}

TEST(AMP_012, RanksThatHoldShardsAgreeOnAnOverflow) {
  test::run_thread_ranks(2, [] {
    const state::PartialState state;
    GradScaler scaler({}, at::kCPU, state.world_group());
    Trained trained;
    const bool stepped = iterate(scaler, trained, state.process_index() == 1 ? kInfinity : 1.0);
    EXPECT_FALSE(stepped);
    EXPECT_EQ(trained.value(), 0);
    EXPECT_EQ(scaler.get_scale(), 32768);
    EXPECT_TRUE(iterate(scaler, trained, 1));
  });
}

TEST(AMP_012, WithoutShardsEachRankJudgesItsOwnGradients) {
  test::run_thread_ranks(2, [] {
    const state::PartialState state;
    GradScaler scaler;
    Trained trained;
    EXPECT_EQ(iterate(scaler, trained, state.process_index() == 1 ? kInfinity : 1.0), state.process_index() == 0);
  });
}

}  // namespace
}  // namespace lockstep::precision
