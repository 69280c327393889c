#include "lockstep/accelerator/local_sgd.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/optim/sgd.h>

#include <stdexcept>

#include "lockstep/base/error.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

/// y = w x, w from 1: the gradient is the input.
struct Weight : torch::nn::Module {
  Weight() { w = register_parameter("w", at::ones({1})); }
  at::Tensor forward(const at::Tensor& x) { return w * x; }
  [[nodiscard]] double value() const { return w.item<double>(); }
  at::Tensor w;
};

/// One rank's training of w by SGD with rate 0.1 on x = rank + 1.
struct Training {
  explicit Training(int accumulation_steps = 1)
      : accelerator({.gradient_accumulation_steps = accumulation_steps}),
        net(std::make_shared<Weight>()),
        model(accelerator.prepare(net)),
        optimizer(accelerator.prepare(torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.1)))),
        rank(accelerator.process_index()) {}

  void step() {
    const auto window = accelerator.accumulate(model);
    accelerator.backward(model(at::full({1}, rank + 1.0)).sum());
    optimizer->step();
    optimizer->zero_grad();
  }

  Accelerator accelerator;
  std::shared_ptr<Weight> net;
  modules::Prepared<Weight> model;
  std::shared_ptr<optim::PreparedOptimizer> optimizer;
  int rank;
};

constexpr double kBound = 1e-6;  // a few roundings of numbers around 1 in single precision

TEST(LocalSgd, AveragesEveryKStepsAndAtTheEnd) {
  test::run_thread_ranks(2, [] {
    Training training;
    {
      LocalSgd local_sgd(training.accelerator, training.model, {.local_sgd_steps = 2});
      const std::vector<double> expected{1 - 0.1 * (training.rank + 1), 0.7, 0.7 - 0.1 * (training.rank + 1)};
      for (const auto weight : expected) {
        training.step();
        local_sgd.step();
        EXPECT_NEAR(training.net->value(), weight, kBound);
      }
    }
    EXPECT_NEAR(training.net->value(), 0.55, kBound);
    training.step();  // gradients are reduced again
    EXPECT_NEAR(training.net->value(), 0.40, kBound);
  });
}

TEST(LocalSgd, MayEndBeforeItsScope) {
  test::run_thread_ranks(2, [] {
    Training training;
    LocalSgd local_sgd(training.accelerator, training.model, {.local_sgd_steps = 8});
    training.step();
    local_sgd.finish();
    EXPECT_NEAR(training.net->value(), 0.85, kBound);
    const auto before = training.accelerator.account().traffic();
    local_sgd.finish();
    EXPECT_THROW(local_sgd.step(), RuntimeError);
    EXPECT_TRUE(training.accelerator.account().traffic().since(before).counts().empty()) << "once is enough";
    training.step();  // gradients are reduced again
    EXPECT_NEAR(training.net->value(), 0.70, kBound);
  });
}

TEST(LocalSgd, GradientsAreNotSentMeanwhile) {
  test::run_thread_ranks(2, [] {
    Training training(/*accumulation_steps=*/2);
    LocalSgd local_sgd(training.accelerator, training.model, {.local_sgd_steps = 100});
    const auto before = training.accelerator.account().traffic();
    for (int i = 0; i < 4; ++i) {
      training.step();
      local_sgd.step();
    }
    EXPECT_TRUE(training.accelerator.account().traffic().since(before).counts().empty());
    EXPECT_NEAR(training.net->value(), 1 - 2 * 0.1 * (training.rank + 1), kBound);  // two optimizer steps
  });
}

TEST(LocalSgd, SwitchedOffItChangesNothing) {
  test::run_thread_ranks(2, [] {
    Training training;
    LocalSgd local_sgd(training.accelerator, training.model, {.local_sgd_steps = 1, .enabled = false});
    training.step();
    local_sgd.step();
    EXPECT_NEAR(training.net->value(), 0.85, kBound);  // the mean gradient
  });
}

TEST(LocalSgd, WorksInASingleProcess) {
  state::as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] {
    Training training;
    LocalSgd local_sgd(training.accelerator, training.model, {.local_sgd_steps = 3});
    training.step();
    local_sgd.step();
    EXPECT_NEAR(training.net->value(), 0.9, kBound);
    EXPECT_THROW(LocalSgd(training.accelerator, training.model, {.local_sgd_steps = 0}), InvalidArgument);
  });
}

// A rank that fails waits for nobody.
TEST(LocalSgd, AnExceptionEndsItWithoutAveraging) {
  test::run_thread_ranks(2, [] {
    Training training;
    try {
      LocalSgd local_sgd(training.accelerator, training.model, {.local_sgd_steps = 5});
      training.step();
      throw std::runtime_error("in training");
    } catch (const std::runtime_error&) {
      EXPECT_NEAR(training.net->value(), 1 - 0.1 * (training.rank + 1), kBound);
    }
  });
}

}  // namespace
}  // namespace lockstep
