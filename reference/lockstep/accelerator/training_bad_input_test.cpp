// What users get wrong: each is refused on every rank, with what was expected, what came and what to do, and nobody
// waits.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/accelerator/training_test_support.h"
#include "lockstep/base/error.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using data::test::Ids;
using test::message_of;
using test::run_thread_ranks;
using test::Weight;

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const auto& word : words) EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' in: " << text;
}

std::vector<RankFailure> failures_of_threads(int n, const std::function<void()>& function) {
  try {
    launch::thread_launcher(function, n);
  } catch (const ChildFailed& failed) {
    return failed.failures();
  }
  ADD_FAILURE() << "no rank failed";
  return {RankFailure{}};
}

TEST(BadInput, AModelWithoutParametersHasNothingToTrain) {
  for (const int world_size : {1, 2}) {
    run_thread_ranks(world_size, [] {
      Accelerator accelerator;
      expect_words(message_of<RuntimeError>([&] { accelerator.prepare(torch::nn::Tanh()); }),
                   {"expected a model with parameters that require a gradient", "none in torch::nn::TanhImpl",
                    "use the model without preparing it"});
      const auto loss = torch::nn::Tanh()(torch::ones({3})).mean();
      expect_words(message_of<RuntimeError>([&] { accelerator.backward(loss); }),
                   {"expected a loss that depends on a parameter", "got one that requires no gradient",
                    "Give the model parameters"});
      accelerator.wait_for_everyone();
    });
  }
}

TEST(BadInput, ALossThatWasDetachedIsRefusedInTheSameWords) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    const auto loss = model(torch::ones({})).sum().detach();
    expect_words(message_of<RuntimeError>([&] { accelerator.backward(loss); }), {"do not detach", "NoGradGuard"});
  });
}

TEST(BadInput, AModelPreparedTwiceIsRefusedUnlessItIsThePreparedOne) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto net = std::make_shared<Weight>();
    const auto model = accelerator.prepare(net);
    expect_words(message_of<InvalidArgument>([&] { static_cast<void>(accelerator.prepare(net)); }),
                 {"expected each model once", "a second time", "Keep what the first call returned"});
    EXPECT_EQ(accelerator.prepare(model).engine(), model.engine());
    accelerator.backward(model(torch::ones({})).sum());
    EXPECT_EQ(net->gradient(), 1) << "the first preparation is as it was";
  });
}

TEST(BadInput, ABatchSizeThatTheRanksDoNotDivideUnderSplitBatches) {
  run_thread_ranks(3, [] {
    Accelerator accelerator({.split_batches = true});
    const auto text = message_of<InvalidArgument>(
        [&] { static_cast<void>(accelerator.prepare(data::DataLoader(Ids{30}, {.batch_size = 8}))); });
    expect_words(text, {"expected batch_size to be a multiple of world size 3", "got batch_size 8",
                        "Round batch_size up", "split_batches=false"});
    accelerator.wait_for_everyone();
  });
}

TEST(BadInput, ModelsThatDifferBetweenRanks) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto text = message_of<CollectiveMismatch>(
        [&] { static_cast<void>(accelerator.prepare(torch::nn::Linear(2, 3 + accelerator.process_index()))); });
    expect_words(text,
                 {"rank 0: weight Float[3, 2]", "rank 1: weight Float[4, 2]", "Build the model alike on every rank"});
  });
}

TEST(BadInput, InDebugModeTensorsThatDifferInShapeOrTypeAreRefusedOnEveryRank) {
  const state::ProcessVariable debug("ACCELERATE_DEBUG_MODE", "1");
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const bool first = accelerator.is_main_process();
    const auto refused = [&](const torch::Tensor& tensor) {
      return message_of<CollectiveMismatch>([&] { static_cast<void>(accelerator.gather(tensor)); });
    };
    expect_words(refused(first ? torch::ones({2, 3}) : torch::ones({6})),
                 {"gather", "expected the same shapes", "on all ranks", "Process 0: [2, 3]", "Process 1: [6]",
                  "Pad with pad_across_processes"});
    expect_words(refused(torch::ones({4}, first ? torch::kFloat : torch::kLong)),
                 {"Process 0: [4] Float", "Process 1: [4] Long", "convert"});
    const auto all = accelerator.gather(torch::ones({1})).tensor();
    EXPECT_EQ(all.size(0), 2) << "the ranks are still in step";
  });
}

/// linear(1,1) twice, without biases.
struct Branches : torch::nn::Module {
  Branches() {
    const auto options = torch::nn::LinearOptions(1, 1).bias(false);
    a = register_module("a", torch::nn::Linear(options));
    b = register_module("b", torch::nn::Linear(options));
  }
  torch::Tensor forward(const torch::Tensor& x, bool uses_a, bool uses_b) {
    auto y = torch::zeros({1, 1});
    if (uses_a) y = y + a->forward(x);
    if (uses_b) y = y + b->forward(x);
    return y;
  }
  torch::nn::Linear a{nullptr};
  torch::nn::Linear b{nullptr};
};

// Rank 1 hears of it, and may well be the first to end.
TEST(BadInput, ADatasetThatFailsOnRank0IsRank0sFailure) {
  struct Failing {
    [[nodiscard]] std::size_t size() const { return 4; }
    [[nodiscard]] at::Tensor get(std::size_t i) const {
      if (i == 3) throw std::out_of_range("no third item");
      return data::test::id(i);
    }
  };
  const auto read_all = [] {
    Accelerator accelerator({.dispatch_batches = true});
    const auto loader = accelerator.prepare(data::DataLoader(Failing{}, {.batch_size = 1}));
    for (const Value& batch : *loader) static_cast<void>(batch);
  };
  for (const auto& failures : {test::failures_of(3, read_all), failures_of_threads(3, read_all)}) {
    ASSERT_EQ(failures.size(), 3U);
    EXPECT_EQ(failures.front().rank, 0);
    for (const auto& failure : failures) {
      EXPECT_EQ(failure.kind, "IndexError");
      expect_words(failure.message, {"no third item"});
    }
  }
}

TEST(CaseJ1, AnUnusedParameterFailsTheFirstBackwardAndNothingSteps) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto net = std::make_shared<Branches>();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    const auto before = net->a->weight.clone();
    const auto one_step = [&] {
      accelerator.backward(model(torch::full({1, 1}, accelerator.process_index() + 1.0), true, false).sum());
      optimizer->step();
    };
    expect_words(message_of<RuntimeError>(one_step), {"expected every parameter to take part in the loss",
                                                      "no gradient for b.weight", "find_unused_parameters=true"});
    EXPECT_TRUE(torch::equal(net->a->weight, before));
  });
}

TEST(CaseJ3, EachRankTakesAnotherBranch) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const bool first = accelerator.is_main_process();
    const auto model = accelerator.prepare(std::make_shared<Branches>());
    expect_words(message_of<RuntimeError>([&] {
                   accelerator.backward(model(torch::ones({1, 1}), first, !first).sum());
                 }),
                 {first ? "no gradient for b.weight" : "no gradient for a.weight"});
  });
  run_thread_ranks(2, [] {
    Accelerator accelerator({.ddp_kwargs = {.find_unused_parameters = true}});
    const bool first = accelerator.is_main_process();
    const auto model = accelerator.prepare(std::make_shared<Branches>());
    accelerator.backward(model(torch::ones({1, 1}), first, !first).sum());
    EXPECT_EQ(model->a->weight.grad().item<double>(), 0.5);
    EXPECT_EQ(model->b->weight.grad().item<double>(), 0.5);
  });
}

TEST(CaseJ1, APeerThatUsesEverythingLearnsWhyTheOtherIsLost) {
  std::string seen;
  const auto failures = failures_of_threads(2, [&seen] {
    Accelerator accelerator;
    const auto model = accelerator.prepare(std::make_shared<Branches>());
    try {
      accelerator.backward(model(torch::ones({1, 1}), true, accelerator.is_main_process()).sum());
    } catch (const RankLost& lost) {
      EXPECT_EQ(accelerator.process_index(), 0);
      EXPECT_EQ(lost.rank(), 1);
      seen = lost.cause();
      throw;
    }
  });
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(failures.front().rank, 1);
  expect_words(failures.front().message, {"no gradient for b.weight"});
  expect_words(seen, {"no gradient for b.weight"});
}

}  // namespace
}  // namespace lockstep
