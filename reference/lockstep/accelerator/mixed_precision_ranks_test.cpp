// Mixed precision between ranks, over Gloo and between threads.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "lockstep/accelerator/training_test_support.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using test::Perceptron;
using test::Points;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

/// Trains in a mode with `batch` rows per rank; the ranks together see the same rows in each step.
at::Tensor train_in(const std::string& mode, std::int64_t batch, int steps) {
  Accelerator accelerator({.mixed_precision = mode, .cpu = true});
  const auto net = std::make_shared<Perceptron>(at::kFloat);
  auto [model, optimizer, loader] =
      accelerator.prepare(net, torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)),
                          data::DataLoader(Points{8 * 10, at::kFloat}, {.batch_size = batch}));
  for (int step = 0; step < steps;) {
    for (const Value& rows : *loader) {
      accelerator.backward(at::mse_loss(model(rows[0].tensor()), rows[1].tensor()));
      accelerator.clip_grad_norm_(net->parameters(), 10);
      optimizer->step();
      optimizer->zero_grad();
      if (++step == steps) break;
    }
  }
  return torch::nn::utils::parameters_to_vector(net->parameters()).detach().clone();
}

TEST(AMP_003, TwoRanksWithHalfTheBatchEqualOneProcess) {
  test::run_processes_and_threads(2, [] {
    for (const std::string mode : {"bf16", "fp16", "fp8"}) {
      at::Tensor alone;
      state::as_rank(kCpu, [&] { alone = train_in(mode, 8, 20); });
      const auto unmoved = torch::nn::utils::parameters_to_vector(Perceptron(at::kFloat).parameters()).detach();
      state::AcceleratorState::reset();
      const auto together = train_in(mode, 4, 20);
      EXPECT_LE(test::relative_distance(together, alone), mode == "fp8" ? 5e-2 : 1e-2) << mode;
      EXPECT_GT(test::relative_distance(together, unmoved), 10e-2) << mode << ": training moves much further";
    }
  });
}

TEST(ACC_023, UnderDdpAnOverflowOnOneRankSkipsTheStepOnAll) {
  test::run_processes_and_threads(2, [] {
    Accelerator accelerator({.mixed_precision = "fp16"});
    const auto net = std::make_shared<test::Weight>(0.0);
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 1.0));
    const auto iterate = [&, model = model, optimizer = optimizer](double x) {
      accelerator.backward(model(at::full({1}, x)).sum());
      optimizer->step();
      optimizer->zero_grad();
    };
    iterate(accelerator.process_index() == 1 ? std::numeric_limits<double>::infinity() : 1.0);
    EXPECT_TRUE(accelerator.optimizer_step_was_skipped());
    EXPECT_EQ(net->w.item<double>(), 0);
    iterate(accelerator.process_index() + 1);
    EXPECT_EQ(net->w.item<double>(), -1.5);
    EXPECT_EQ(accelerator.scaler()->get_scale(), 32768);
  });
}

}  // namespace
}  // namespace lockstep
