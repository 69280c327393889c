// Training between processes, over Gloo: the same numbers as between threads, and failures that every rank learns of.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>

#include "lockstep/accelerator/training_test_support.h"
#include "lockstep/base/error.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using test::deviation;
using test::Method;
using test::Recipe;
using test::Weight;

constexpr auto kTimeout = std::chrono::seconds(20);

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const auto& word : words) EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' in: " << text;
}

void expect_equal_to_one_process(int world_size) {
  test::run_ranks(world_size, [world_size] {
    torch::set_num_threads(1);
    for (const auto method : {Method::sgd, Method::adamw}) {
      const Recipe exact{.method = method, .accumulation = 2};
      const auto together = test::train_together(exact).at(50);
      const auto alone = test::train_alone(exact, world_size).at(50);
      EXPECT_LE(deviation(together, alone, 1e-10, 1e-12), 1) << exact.name();
      const Recipe rounded{.dtype = torch::kFloat, .method = method};
      const bool is_sgd = method == Method::sgd;
      const auto floats = test::train_together(rounded);
      const auto floats_alone = test::train_alone(rounded, world_size);
      EXPECT_LE(deviation(floats.at(10), floats_alone.at(10), is_sgd ? 1e-4 : 1e-3, is_sgd ? 1e-5 : 1e-4), 1)
          << rounded.name();
      EXPECT_LE(test::relative_distance(floats.at(50), floats_alone.at(50)), 1e-4) << rounded.name();
    }
  });
}

TEST(NUM_002, TwoProcessesEqualOne) { expect_equal_to_one_process(2); }
TEST(NUM_002, ThreeProcessesEqualOne) { expect_equal_to_one_process(3); }

TEST(NUM_002, TheComparisonBetweenProcessesFailsWithoutTheAveraging) {
  test::run_ranks(2, [] {
    torch::set_num_threads(1);
    const Recipe recipe{.accumulation = 2};
    const auto apart = test::train_together(recipe, /*averages=*/false).at(50);
    EXPECT_GT(test::relative_distance(apart, test::train_alone(recipe, 2).at(50)), 100 * 1e-4);
  });
}

// DDP_011 and DDP_012 as a user's loop has them.
TEST(DDP_012, TheAcceleratorsLoopCosts2PsiPerOptimizerStep) {
  test::run_ranks(2, [] {
    for (const int k : {1, 4}) {
      Accelerator accelerator({.gradient_accumulation_steps = k});
      const auto net = std::make_shared<test::Perceptron>(torch::kFloat);
      const auto elements = torch::nn::utils::parameters_to_vector(net->parameters()).numel();
      auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
      for (int step = 1; step <= 3; ++step) {
        const auto before = accelerator.account().traffic();
        for (int micro_step = 1; micro_step <= k; ++micro_step) {
          EXPECT_TRUE(accelerator.account().traffic().since(before).counts().empty())
              << "before the window's last backward";
          const auto window = accelerator.accumulate(model);
          accelerator.backward(model(torch::ones({2, 5})).sum());
          optimizer->step();
          optimizer->zero_grad();
        }
        const auto traffic = accelerator.account().traffic().since(before);
        EXPECT_EQ(traffic.total("allreduce").elements, elements) << "k " << k << ", step " << step;
        if (step != 2)
          EXPECT_EQ(traffic.volume(), 2 * elements) << "k " << k << ", step " << step;  // 2: buckets are made anew
      }
    }
  });
}

/// Fails at one index, on one rank.
struct Faulty {
  bool fails;
  [[nodiscard]] std::size_t size() const { return 32; }
  [[nodiscard]] torch::Tensor get(std::size_t index) const {
    if (fails && index == 13) throw std::out_of_range("sample 13 is damaged");
    return torch::full({}, static_cast<double>(index));
  }
};

TEST(BadInput, ADatasetThatThrowsOnOneRankEndsAllWithItsReason) {
  for (const int num_workers : {0, 2}) {
    const auto start = std::chrono::steady_clock::now();
    const auto failures = test::failures_of(3,
                                            [num_workers] {
                                              Accelerator accelerator;
                                              auto [model, loader] = accelerator.prepare(
                                                  std::make_shared<Weight>(),
                                                  data::DataLoader(Faulty{.fails = accelerator.process_index() == 0},
                                                                   {.batch_size = 2, .num_workers = num_workers}));
                                              for (const Value& batch : *loader)
                                                accelerator.backward(model(batch.tensor().to(torch::kFloat)).sum());
                                            },
                                            {.timeout = kTimeout});
    // The 13th sample is in rank 0's third batch of two.
    ASSERT_EQ(failures.size(), 3U) << num_workers << " workers";
    EXPECT_EQ(failures.front().rank, 0);
    EXPECT_EQ(failures.front().kind, "IndexError");
    expect_words(failures.front().message, {"13", "sample 13 is damaged"});
    for (std::size_t i = 1; i < failures.size(); ++i)
      expect_words(failures[i].message, {"rank 0", "sample 13 is damaged"});
    EXPECT_LT(std::chrono::steady_clock::now() - start, kTimeout) << "nobody waited for a time-out";
  }
}

TEST(CollectiveMismatch, ModelsThatDifferAreRefusedOnEveryProcess) {
  const auto failures = test::failures_of(
      3,
      [] {
        Accelerator accelerator;
        static_cast<void>(accelerator.prepare(torch::nn::Linear(2, accelerator.process_index() == 2 ? 4 : 3)));
      },
      {.timeout = kTimeout});
  ASSERT_EQ(failures.size(), 3U);
  for (const auto& failure : failures) {
    EXPECT_EQ(failure.kind, "DistributedOperationException") << "rank " << failure.rank;
  }
}

TEST(CaseJ1, APeerThatUsesEverythingIsNotLeftWaiting) {
  const auto failures = test::failures_of(2,
                                          [] {
                                            Accelerator accelerator;
                                            struct Pair : torch::nn::Module {
                                              Pair() {
                                                a = register_parameter("a", torch::ones({1}));
                                                b = register_parameter("b", torch::ones({1}));
                                              }
                                              torch::Tensor forward(bool uses_b) { return uses_b ? a * b : a * 2; }
                                              torch::Tensor a, b;
                                            };
                                            const auto model = accelerator.prepare(std::make_shared<Pair>());
                                            accelerator.backward(model(accelerator.is_main_process()).sum());
                                          },
                                          {.timeout = kTimeout});
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(failures.front().rank, 1);
  expect_words(failures.front().message, {"no gradient for b"});
  expect_words(failures[1].message, {"rank 1", "no gradient for b"});
}

}  // namespace
}  // namespace lockstep
