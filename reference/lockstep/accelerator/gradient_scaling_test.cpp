// Training under fp16: what the scaler does between backward and step, as a user's loop has it.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <limits>

#include "lockstep/accelerator/training_test_support.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using config::GradScalerKwargs;
using test::Weight;
using torch::optim::SGD;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An Accelerator under fp16 on one process, and a weight at 0 under SGD with rate 1.
struct Fp16 {
  explicit Fp16(const GradScalerKwargs& kwargs = {}, int steps = 1)
      : accelerator({.mixed_precision = "fp16",
                     .gradient_accumulation_steps = steps,
                     .cpu = true,
                     .kwargs_handlers = {kwargs}}) {}

  Accelerator accelerator;
  std::shared_ptr<Weight> net = std::make_shared<Weight>(0.0);
  std::shared_ptr<optim::PreparedOptimizer> optimizer = accelerator.prepare(SGD(net->parameters(), 1.0));

  /// Adds `gradient`, as the loss has it.
  void backward(double gradient) { accelerator.backward((net->w * gradient).sum()); }
  [[nodiscard]] double value() const { return net->w.item<double>(); }
  void iterate(double gradient) {
    backward(gradient);
    optimizer->step();
    optimizer->zero_grad();
  }
};

void as_single_rank(const std::function<void()>& body) { state::as_rank({{"ACCELERATE_USE_CPU", "1"}}, body); }

TEST(AMP_008, BackwardDifferentiatesTheScaledLoss) {
  as_single_rank([] {
    Fp16 training({}, /*steps=*/2);
    training.backward(2);
    EXPECT_EQ(training.net->gradient(), 65536) << "scale * 2 / 2 steps";
  });
  as_single_rank([] {
    Fp16 training;
    training.backward(2);
    EXPECT_EQ(training.net->gradient(), 131072);
  });
}

TEST(ACC_023, AnOverflowSkipsTheStepAndTheNextGoodOneResetsIt) {
  as_single_rank([] {
    Fp16 training;
    training.iterate(1);
    EXPECT_FALSE(training.accelerator.optimizer_step_was_skipped());
    training.iterate(kInfinity);
    EXPECT_TRUE(training.optimizer->step_was_skipped());
    EXPECT_TRUE(training.accelerator.optimizer_step_was_skipped());
    EXPECT_EQ(training.value(), -1);
    EXPECT_EQ(training.accelerator.scaler()->get_scale(), 32768);
    training.iterate(1);
    EXPECT_FALSE(training.accelerator.optimizer_step_was_skipped());
    EXPECT_EQ(training.value(), -2);
  });
}

TEST(ACC_025, AStepWithoutAnyGradientIsRefused) {
  as_single_rank([] { EXPECT_THROW(Fp16().optimizer->step(), AssertionError); });
}

// Clipping both used to unscale the second one twice: it moved by 0.125.
TEST(ACC_026, TwoOptimizersShareOneScaler) {
  as_single_rank([] {
    Fp16 training({.init_scale = 8, .growth_interval = 2});
    auto& accelerator = training.accelerator;
    const auto other = std::make_shared<Weight>(0.0);
    const auto second = accelerator.prepare(SGD(other->parameters(), 1.0));
    std::vector<double> scales;
    for (int step = 0; step < 4; ++step) {
      accelerator.backward(training.net->w.sum() + other->w.sum());
      accelerator.unscale_gradients();
      training.optimizer->step();
      second->step();
      training.optimizer->zero_grad();
      second->zero_grad();
      scales.push_back(accelerator.scaler()->get_scale());
    }
    EXPECT_EQ(training.value(), -4);
    EXPECT_EQ(other->w.item<double>(), -4);
    EXPECT_EQ(scales, (std::vector<double>{8, 16, 16, 32}));
  });
}

TEST(ACC_026, EachModelIsClippedByItself) {
  as_single_rank([] {
    Fp16 training({.init_scale = 8});
    auto& accelerator = training.accelerator;
    const auto other = std::make_shared<Weight>(0.0);
    const auto second = accelerator.prepare(SGD(other->parameters(), 1.0));
    accelerator.backward(3 * training.net->w.sum() + 5 * other->w.sum());
    EXPECT_EQ(accelerator.clip_grad_norm_(training.net->parameters(), 100), 3);
    EXPECT_EQ(accelerator.clip_grad_norm_(other->parameters(), 100), 5);
    training.optimizer->step();
    second->step();
    EXPECT_EQ(training.value(), -3);
    EXPECT_EQ(other->w.item<double>(), -5);
  });
}

TEST(ACC_040, ClippingByNormUnscalesFirst) {
  as_single_rank([] {
    Fp16 training;
    training.backward(6);
    EXPECT_EQ(training.accelerator.clip_grad_norm_(training.net->parameters(), 2), 6);
    training.optimizer->step();
    EXPECT_NEAR(training.value(), -2, 1e-5);
  });
}

TEST(ACC_041, ClippingByValueUnscalesFirst) {
  as_single_rank([] {
    Fp16 training;
    training.backward(6);
    training.accelerator.clip_grad_value_(training.net->parameters(), 0.5);
    training.optimizer->step();
    EXPECT_EQ(training.value(), -0.5);
  });
}

TEST(ACC_042, UnscalingOrClippingTwiceBeforeAStepIsRefused) {
  as_single_rank([] {
    Fp16 training;
    auto& accelerator = training.accelerator;
    training.backward(6);
    accelerator.unscale_gradients({training.optimizer});
    EXPECT_EQ(training.net->gradient(), 6);
    const auto text = test::message_of<RuntimeError>([&] { accelerator.unscale_gradients(); });
    EXPECT_NE(text.find("already been called"), std::string::npos) << text;
    EXPECT_THROW(accelerator.clip_grad_norm_(training.net->parameters(), 1), RuntimeError);
    training.optimizer->step();
    EXPECT_EQ(training.value(), -6);
    training.optimizer->zero_grad();
    training.backward(6);
    EXPECT_EQ(accelerator.clip_grad_norm_(training.net->parameters(), 100), 6);
  });
}

TEST(ACC_042, WithoutFp16NothingIsUnscaled) {
  as_single_rank([] {
    Accelerator accelerator({.mixed_precision = "bf16", .cpu = true});
    const auto net = std::make_shared<Weight>();
    const auto optimizer = accelerator.prepare(SGD(net->parameters(), 1.0));
    accelerator.backward(net->w.sum() * 4);
    accelerator.unscale_gradients();
    accelerator.unscale_gradients();
    EXPECT_EQ(net->gradient(), 4);
    EXPECT_EQ(accelerator.scaler(), nullptr);
  });
}

TEST(KW_012, TheHandlerReachesTheScaler) {
  as_single_rank([] {
    Fp16 training({.init_scale = 4, .growth_interval = 2});
    std::vector<double> scales;
    for (int step = 0; step < 4; ++step) {
      training.iterate(1);
      scales.push_back(training.accelerator.scaler()->get_scale());
    }
    EXPECT_EQ(scales, (std::vector<double>{4, 8, 8, 16}));
  });
  as_single_rank([] {
    Fp16 training({.enabled = false});
    training.iterate(2);
    EXPECT_EQ(training.value(), -2);
    EXPECT_NO_THROW(training.optimizer->step()) << "no gradient, and nobody looks";
  });
}

// Case D5.
TEST(ACC_031, ASkippedStepDoesNotMoveTheSchedule) {
  as_single_rank([] {
    Fp16 training;
    const auto scheduler = training.accelerator.prepare(std::make_shared<optim::LambdaLr>(
        training.optimizer->optimizer(), [](std::int64_t k) { return 1.0 / (1.0 + static_cast<double>(k)); }));
    const auto rate_after = [&](double gradient) {
      training.iterate(gradient);
      scheduler->step();
      return training.optimizer->param_groups()[0].options().get_lr();
    };
    EXPECT_EQ(rate_after(kInfinity), 1.0);
    EXPECT_EQ(rate_after(1), 0.5);
  });
}

TEST(ACC_042, UnderAccumulationClippingIsGuardedBySyncGradients) {
  as_single_rank([] {
    Fp16 training({.init_scale = 8}, /*steps=*/2);
    auto& accelerator = training.accelerator;
    for (int micro_step = 0; micro_step < 4; ++micro_step) {
      const auto window = accelerator.accumulate();
      training.backward(1);
      if (accelerator.sync_gradients()) {
        EXPECT_EQ(accelerator.clip_grad_norm_(training.net->parameters(), 10), 1);
      }
      training.optimizer->step();
      training.optimizer->zero_grad();
    }
    EXPECT_EQ(training.value(), -2);
  });
}

TEST(ACC_042, InTheMidstOfAWindowNothingIsClippedOrUnscaled) {
  as_single_rank([] {
    Accelerator accelerator({.mixed_precision = "fp16", .gradient_accumulation_steps = 2});
    const auto net = std::make_shared<test::Weight>(0.5);
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    const auto window = accelerator.accumulate(model);
    accelerator.backward(model(at::ones({1})).sum());
    const auto text = test::message_of<RuntimeError>([&] { accelerator.clip_grad_norm_(net->parameters(), 1); });
    EXPECT_NE(text.find("sync_gradients() is true"), std::string::npos) << text;
    EXPECT_THROW(accelerator.clip_grad_value_(net->parameters(), 1), RuntimeError);
    EXPECT_THROW(accelerator.unscale_gradients(), RuntimeError);
    EXPECT_THROW(accelerator.unscale_gradients({optimizer}), RuntimeError);
    EXPECT_NO_THROW(accelerator.clip_grad_norm_({at::ones({1})}, 1)) << "which no scale is on";
    EXPECT_EQ(net->gradient(), 32768) << "half of the scale, as before";
  });
}

TEST(ACC_042, ALimitThatIsRefusedLeavesTheScaleOnTheGradients) {
  as_single_rank([] {
    Accelerator accelerator({.mixed_precision = "fp16"});
    const auto net = std::make_shared<test::Weight>(0.5);
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    accelerator.backward(model(at::ones({1})).sum());
    EXPECT_THROW(accelerator.clip_grad_norm_(net->parameters(), -1), InvalidArgument);
    EXPECT_THROW(accelerator.clip_grad_value_(net->parameters(), -1), InvalidArgument);
    EXPECT_EQ(net->gradient(), 65536);
    EXPECT_EQ(accelerator.clip_grad_norm_(net->parameters(), 1), 1);
  });
}

}  // namespace
}  // namespace lockstep
