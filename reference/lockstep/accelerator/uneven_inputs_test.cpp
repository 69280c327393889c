// Ranks that run out of batches before the others, as a user's loop has them: between processes over Gloo, and between
// threads.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>

#include "lockstep/accelerator/training_test_support.h"
#include "lockstep/base/error.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using data::test::drain_loader;
using data::test::Ids;
using test::message_of;
using test::run_processes_and_threads;
using test::Weight;

constexpr JoinOptions kUneven{.even_batches = false, .on_cpu = true};

data::DataLoader ids(std::size_t n) { return data::DataLoader(Ids{n}, {.batch_size = 1}); }

// The samples are 1, 2, ..., as [1, 1] floats.
at::Tensor sample(const Value& batch) { return batch.tensor().to(at::kFloat).add(1).view({1, 1}); }

bool equal_on_all_ranks(const Accelerator& accelerator, const torch::nn::Module& net) {
  std::vector<at::Tensor> rows;
  for (const auto& list : {net.parameters(), net.buffers()}) {
    for (const auto& tensor : list) rows.push_back(tensor.detach().contiguous().reshape({-1}).view(at::kByte));
  }
  const auto all = accelerator.gather(at::cat(rows)).tensor().view({accelerator.num_processes(), -1});
  return all.eq(all[0]).all().item<bool>();
}

// One pass over 1..n, one at a time; the weight's gradient after each step.
template <typename Options>
std::vector<double> gradients_of_a_pass(Accelerator& accelerator, const std::shared_ptr<Weight>& net, std::size_t n,
                                        const Options& options) {
  auto [model, optimizer, loader] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1), ids(n));
  std::vector<double> gradients;
  const auto uneven = accelerator.join_uneven_inputs(options);
  for (const Value& batch : *loader) {
    const auto window = accelerator.accumulate(model);
    accelerator.backward(model(sample(batch)).sum());
    if (accelerator.sync_gradients()) gradients.push_back(net->gradient());
    optimizer->step();
    optimizer->zero_grad();
  }
  return gradients;
}

TEST(ACC_044, ThreeStepsAndTwoOfWhichTheOddOneIsHalved) {
  run_processes_and_threads(2, [] {
    Accelerator accelerator;
    const auto net = std::make_shared<Weight>();
    const auto gradients = gradients_of_a_pass(accelerator, net, 5, kUneven);
    const bool is_first = accelerator.process_index() == 0;
    EXPECT_EQ(gradients, is_first ? (std::vector<double>{1.5, 3.5, 2.5}) : (std::vector<double>{1.5, 3.5}));
    EXPECT_FLOAT_EQ(net->w.item<float>(), 0.25F);
    EXPECT_TRUE(equal_on_all_ranks(accelerator, *net));
  });
}

TEST(ACC_044, OnThreeRanksTwoMayRunOutBeforeTheLast) {
  run_processes_and_threads(3, [] {
    Accelerator accelerator({.even_batches = false});
    const auto net = std::make_shared<Weight>();
    const auto gradients = gradients_of_a_pass(accelerator, net, 4, JoinOptions{.on_cpu = true});
    EXPECT_EQ(gradients.size(), accelerator.process_index() == 0 ? 2U : 1U);
    EXPECT_EQ(gradients.front(), 2.0);
    EXPECT_FLOAT_EQ(static_cast<float>(gradients.back()), accelerator.process_index() == 0 ? 4.0F / 3 : 2.0F);
    EXPECT_TRUE(equal_on_all_ranks(accelerator, *net));
  });
}

TEST(ACC_044, TheDivisorMayBeTheNumberOfRanksWithInputs) {
  run_processes_and_threads(2, [] {
    Accelerator accelerator;
    const auto net = std::make_shared<Weight>();
    auto options = kUneven;
    options.divide_by_initial_world_size = false;
    const auto gradients = gradients_of_a_pass(accelerator, net, 5, options);
    EXPECT_EQ(gradients.back(), accelerator.process_index() == 0 ? 5.0 : 3.5);
    EXPECT_TRUE(equal_on_all_ranks(accelerator, *net));
  });
}

TEST(ACC_044, MayEndBeforeItsScope) {
  run_processes_and_threads(2, [] {
    Accelerator accelerator;
    const auto net = std::make_shared<Weight>();
    auto [model, optimizer, loader] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1), ids(3));
    auto uneven = accelerator.join_uneven_inputs(kUneven);
    for (const Value& batch : *loader) {
      accelerator.backward(model(sample(batch)).sum());
      optimizer->step();
      optimizer->zero_grad();
    }
    uneven.finish();
    EXPECT_TRUE(equal_on_all_ranks(accelerator, *net));
    uneven.finish();
    int num_steps = 0;
    for (const Value& batch : *loader) num_steps += batch.is_tensor() ? 1 : 0;
    EXPECT_EQ(num_steps, 2) << "even_batches is as it was";
  });
}

TEST(ACC_044, WindowsOfTwoMicroBatches) {
  run_processes_and_threads(2, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 2});
    const auto net = std::make_shared<Weight>();
    const auto gradients = gradients_of_a_pass(accelerator, net, 5, kUneven);
    // ((1 + 3) / 2 + (2 + 4) / 2) / 2, then 5 / 2 / 2.
    const bool is_first = accelerator.process_index() == 0;
    EXPECT_EQ(gradients, is_first ? (std::vector<double>{2.5, 1.25}) : (std::vector<double>{2.5}));
    EXPECT_TRUE(equal_on_all_ranks(accelerator, *net));
  });
}

// Rank 1's pass ends with its second micro-batch, which therefore synchronises; rank 0's does with its third.
TEST(ACC_044, WindowsOfUnequalLengthMeet) {
  run_processes_and_threads(2, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 4});
    const auto net = std::make_shared<Weight>();
    EXPECT_EQ(gradients_of_a_pass(accelerator, net, 5, kUneven), std::vector<double>{(9.0 / 4 + 6.0 / 4) / 2});
    EXPECT_TRUE(equal_on_all_ranks(accelerator, *net));
  });
}

// The fifth sample overflows, in a step that rank 0 takes alone.
TEST(ACC_044, TheLossScaleIsThatOfTheRankThatWasLast) {
  run_processes_and_threads(2, [] {
    Accelerator accelerator({.mixed_precision = "fp16"});
    const auto net = std::make_shared<Weight>();
    auto [model, optimizer, loader] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1), ids(5));
    {
      const auto uneven = accelerator.join_uneven_inputs(kUneven);
      for (const Value& batch : *loader) {
        const auto x = sample(batch);
        accelerator.backward(model(x.item<float>() == 5 ? x / 0 : x).sum());
        optimizer->step();
        optimizer->zero_grad();
      }
    }
    EXPECT_EQ(accelerator.scaler()->get_scale(), 32768);
    EXPECT_TRUE(equal_on_all_ranks(accelerator, *net));
  });
}

/// Batch norm over what a forward is given, and a layer that every second sample leaves out.
struct Changing : torch::nn::Module {
  Changing() {
    norm = register_module("norm", torch::nn::BatchNorm1d(2));
    often = register_module("often", torch::nn::Linear(2, 2));
    sometimes = register_module("sometimes", torch::nn::Linear(2, 2));
  }
  at::Tensor forward(const at::Tensor& x, bool uses_both) {
    const auto y = often->forward(norm->forward(x));
    return uses_both ? sometimes->forward(y) : y;
  }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear often{nullptr}, sometimes{nullptr};
};

TEST(ACC_044, BatchNormAndUnusedParameters) {
  run_processes_and_threads(3, [] {
    Accelerator accelerator({.ddp_kwargs = {.find_unused_parameters = true}});
    const auto net = std::make_shared<Changing>();
    auto [model, optimizer, loader] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1), ids(10));
    {
      const auto uneven = accelerator.join_uneven_inputs(kUneven);
      for (const Value& batch : *loader) {
        const auto x = at::cat({sample(batch), -sample(batch)}, 1);
        const bool uses_both = batch.tensor().item<std::int64_t>() % 2 == 0;
        accelerator.backward(model(at::cat({x, x * x}), uses_both).square().sum());
        optimizer->step();
        optimizer->zero_grad();
      }
    }
    EXPECT_EQ(net->norm->num_batches_tracked.item<std::int64_t>(), 4);
    EXPECT_TRUE(equal_on_all_ranks(accelerator, *net));
  });
}

TEST(ACC_044, EvenBatchesComesBackAtTheEndAndAfterAnError) {
  test::run_thread_ranks(2, [] {
    Accelerator accelerator;
    auto [model, loader] = accelerator.prepare(std::make_shared<Weight>(), ids(5));
    const auto count = [&loader = loader] { return drain_loader(*loader).size(); };
    {
      const auto uneven = accelerator.join_uneven_inputs(kUneven);
      EXPECT_EQ(count(), accelerator.process_index() == 0 ? 3U : 2U);
    }
    EXPECT_EQ(count(), 3U);
    message_of<std::runtime_error>([&] {
      const auto uneven = accelerator.join_uneven_inputs(kUneven);
      EXPECT_EQ(count(), accelerator.process_index() == 0 ? 3U : 2U);
      throw std::runtime_error("the loop failed");
    });
    EXPECT_EQ(count(), 3U);
    accelerator.backward(model(at::ones({1})).sum());  // and the model reduces as before
    EXPECT_EQ(model->gradient(), 1.0);
  });
}

TEST(ACC_044, WithEvenBatchesNobodyJoinsAndNothingIsAgreedUpon) {
  test::run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    const auto num_calls_of_a_step = [&](const JoinOptions& options) {
      const auto uneven = accelerator.join_uneven_inputs(options);
      const auto before = accelerator.account().traffic();
      accelerator.backward(model(at::ones({1})).sum());
      return accelerator.account().traffic().since(before).total().calls;
    };
    for (int step = 0; step < 2; ++step) accelerator.backward(model(at::ones({1})).sum());  // buckets are as they stay
    EXPECT_EQ(num_calls_of_a_step({.on_cpu = true}), 1);
    EXPECT_EQ(num_calls_of_a_step(kUneven), 2);
  });
}

TEST(ACC_044, AStaticGraphIsRefusedOnAllRanks) {
  test::run_thread_ranks(2, [] {
    Accelerator accelerator({.ddp_kwargs = {.static_graph = true}});
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    const auto text = message_of<NotSupported>([&] { const auto uneven = accelerator.join_uneven_inputs(kUneven); });
    EXPECT_NE(text.find("static_graph"), std::string::npos) << text;
  });
}

// One rank waits for the others to finish, one is in its loop, and one fails in it.
TEST(ACC_044, ARankThatFailsInItsLoopLeavesNobodyWaiting) {
  constexpr auto kTimeout = std::chrono::seconds(30);
  const auto start = std::chrono::steady_clock::now();
  const auto failures = test::failures_of(3,
                                          [] {
                                            Accelerator accelerator;
                                            const auto model = accelerator.prepare(std::make_shared<Weight>());
                                            const auto uneven = accelerator.join_uneven_inputs(kUneven);
                                            for (int step = 0; step < 2 + accelerator.process_index(); ++step) {
                                              if (step == 3) throw std::runtime_error("planted");
                                              accelerator.backward(model(at::ones({1})).sum());
                                            }
                                            if (accelerator.process_index() == 1)
                                              accelerator.backward(model(at::ones({1})).sum());
                                          },
                                          {.timeout = kTimeout});
  EXPECT_LT(std::chrono::steady_clock::now() - start, kTimeout) << "nobody waited for a time-out";
  ASSERT_EQ(failures.size(), 3U);
  EXPECT_EQ(failures.front().rank, 2);
  for (std::size_t i = 1; i < failures.size(); ++i) {
    EXPECT_NE(failures[i].message.find("rank 2"), std::string::npos) << failures[i].message;
    EXPECT_NE(failures[i].message.find("planted"), std::string::npos) << failures[i].message;
  }
}

TEST(ACC_045, OneProcessIsSilentAlsoWhereItMayJoin) {
  testing::internal::CaptureStderr();
  state::as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] {
    Accelerator accelerator;
    EXPECT_EQ(gradients_of_a_pass(accelerator, std::make_shared<Weight>(), 3, kUneven).size(), 3U);
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace lockstep
