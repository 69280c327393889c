#include "lockstep/parallel/ddp/distributed_data_parallel.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp/ddp_test_support.h"
#include "lockstep/parallel/strategy.h"
#include "run_ranks.h"

namespace lockstep::parallel {
namespace {

using test::Scale;
using test::Wrapped;

int rank() { return test::world().rank(); }

/// All kinds of state: parameters of two dtypes, a frozen one, buffers of floats and of integers.
struct Mixed : torch::nn::Module {
  Mixed() {
    norm = register_module("norm", torch::nn::BatchNorm1d(3));
    linear = register_module("linear", torch::nn::Linear(3, 2));
    wide = register_parameter("wide", at::zeros({5}, at::kDouble));
    frozen = register_parameter("frozen", at::zeros({4}), /*requires_grad=*/false);
  }
  at::Tensor forward(const at::Tensor& x) {
    mean_before = norm->running_mean.clone();
    return linear->forward(norm->forward(x)) + wide.sum() + frozen.sum();
  }
  void fill(double value) {
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters()) parameter.fill_(value);
    for (auto& buffer : buffers()) buffer.fill_(value);
  }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear linear{nullptr};
  at::Tensor wide;
  at::Tensor frozen;
  at::Tensor mean_before;  // the running mean that the last forward found
};

TEST(DDP_001, WrappingMakesRanksThatWereInitialisedDifferentlyBitwiseEqual) {
  lockstep::test::run_thread_ranks(3, [] {
    const auto net = std::make_shared<Mixed>();
    net->fill(rank() + 0.1);
    EXPECT_FALSE(test::equal_on_all_ranks(test::bytes_of(*net)));
    const Wrapped wrapped(net);
    EXPECT_TRUE(test::equal_on_all_ranks(test::bytes_of(*net)));
    const auto expected = std::make_shared<Mixed>();
    expected->fill(0.1);  // rank 0's
    EXPECT_TRUE(at::equal(test::bytes_of(*net), test::bytes_of(*expected)));
  });
}

TEST(DDP_002, GradientsAreTheMeanOverTheRanks) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Scale>());
    torch::optim::SGD sgd(wrapped.net->parameters(), 0.1);
    wrapped.backward(wrapped.model(at::full({1}, rank() == 0 ? 2.0 : 4.0)).sum());
    EXPECT_EQ(wrapped.net->w.grad().item<float>(), 3.0F);
    sgd.step();
    EXPECT_FLOAT_EQ(wrapped.net->w.item<float>(), 0.7F);
  });
}

torch::nn::Sequential perceptron() {
  torch::nn::Sequential net(torch::nn::Linear(4, 6), torch::nn::Tanh(), torch::nn::Linear(6, 2));
  const at::NoGradGuard no_grad;
  for (auto& parameter : net->parameters()) {
    parameter.copy_(at::arange(parameter.numel()).mul(0.7).sin().mul(0.5).view(parameter.sizes()));
  }
  return net;
}

at::Tensor samples(std::int64_t from, std::int64_t count) {
  return at::arange(from * 4, (from + count) * 4, at::kFloat).mul(0.37).cos().view({count, 4});
}

struct Forward : torch::nn::Module {
  Forward() { net = register_module("net", perceptron()); }
  at::Tensor forward(const at::Tensor& x) { return net->forward(x); }
  torch::nn::Sequential net{nullptr};
};

TEST(DDP_002, RanksTogetherHaveTheGradientOfOneProcessOverAllTheirBatches) {
  lockstep::test::run_thread_ranks(3, [] {
    const Wrapped wrapped(std::make_shared<Forward>());
    wrapped.backward(wrapped.model(samples(5 * rank(), 5)).square().mean());
    auto alone = std::make_shared<Forward>();
    alone->forward(samples(0, 15)).square().mean().backward();
    const auto together = test::gradients_of(*wrapped.net);
    const auto expected = test::gradients_of(*alone);
    alone->zero_grad();
    alone->forward(samples(5 * rank(), 5)).square().mean().backward();
    const auto local = test::gradients_of(*alone);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::allclose(together[i], expected[i], 1.3e-6, 1e-5));
      EXPECT_FALSE(at::allclose(together[i], local[i], 1e-2, 1e-3)) << "the data would show nothing";
    }
  });
}

TEST(DDP_003, UnequalLocalBatchesWeighAlike) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Scale>());
    const auto batch = rank() == 0 ? at::full({1}, 2.0) : at::tensor({4.0F, 6.0F});
    wrapped.backward(wrapped.model(batch).mean());
    EXPECT_EQ(wrapped.net->w.grad().item<float>(), 3.5F);
  });
}

/// Uses its weight twice, and the same layer twice.
struct Twice : torch::nn::Module {
  Twice() {
    w = register_parameter("w", at::full({1}, 3.0));
    net = register_module("net", perceptron());
    unused = register_parameter("unused", at::ones({2}));
  }
  at::Tensor forward(const at::Tensor& x) { return w * (net->forward(x).sum() + w * net->forward(x * 2).sum()); }
  at::Tensor w;
  at::Tensor unused;
  torch::nn::Sequential net{nullptr};
};

TEST(DDP_006, AStaticGraphMayUseParametersSeveralTimesAndLeaveSomeOut) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Twice>(), {.static_graph = true});
    auto alone = std::make_shared<Twice>();
    for (int step = 0; step < 4; ++step) {
      wrapped.forget_gradients();
      wrapped.backward(wrapped.model(samples(step + 7 * rank(), 2)));
      alone->zero_grad();
      ((alone->forward(samples(step, 2)) + alone->forward(samples(step + 7, 2))) / 2).backward();
      for (const auto& item : alone->named_parameters()) {
        const auto gradient = wrapped.net->named_parameters()[item.key()].grad();
        if (item.key() == "unused") {
          EXPECT_FALSE(gradient.defined());
        } else {
          EXPECT_TRUE(at::allclose(gradient, item.value().grad(), 1.3e-6, 1e-5)) << item.key() << " in step " << step;
        }
      }
    }
  });
}

TEST(DDP_006, AStaticGraphIsLearntFromTheFirstBackwardThatReduces) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Scale>(), {.static_graph = true});
    const auto x = [](double factor) { return at::full({1}, factor * (rank() + 1)); };
    for (int window = 0; window < 4; ++window) {
      wrapped.forget_gradients();
      {
        const modules::SynchronisationScope local(*wrapped.engine, false);
        wrapped.backward(wrapped.model(x(1)).sum());
      }
      EXPECT_EQ(wrapped.net->w.grad().item<float>(), rank() + 1.0F) << "window " << window;
      const auto first = wrapped.model(x(2)).sum();  // two forwards, then a backward through both
      wrapped.backward(first + wrapped.model(x(3)).sum());
      EXPECT_EQ(wrapped.net->w.grad().item<float>(), 9.0F) << "window " << window;
    }
  });
}

/// One layer that is registered in two places.
struct Shared : torch::nn::Module {
  Shared() {
    first = register_module("first", torch::nn::Linear(2, 2));
    again = register_module("again", first);
  }
  at::Tensor forward(const at::Tensor& x) { return again->forward(first->forward(x)); }
  torch::nn::Linear first{nullptr};
  torch::nn::Linear again{nullptr};
};

TEST(DistributedDataParallel, ATiedParameterIsReducedOnce) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Shared>());
    auto alone = std::make_shared<Shared>();
    {
      const at::NoGradGuard no_grad;
      alone->first->weight.copy_(wrapped.net->first->weight);
      alone->first->bias.copy_(wrapped.net->first->bias);
    }
    const auto input = [](int of) { return at::full({1, 2}, of + 1.0); };
    for (int step = 0; step < 2; ++step) {
      wrapped.forget_gradients();
      wrapped.backward(wrapped.model(input(rank())).sum());
    }
    ((alone->forward(input(0)) + alone->forward(input(1))) / 2).sum().backward();
    EXPECT_TRUE(at::allclose(wrapped.net->first->weight.grad(), alone->first->weight.grad()));
    EXPECT_EQ(wrapped.engine->buckets().front().size(), 2U);
  });
}

TEST(DDP_007, GradientsMayBeViewsIntoTheBucketsWithTheSameBits) {
  lockstep::test::run_thread_ranks(2, [] {
    const auto train = [](bool view) {
      const Wrapped wrapped(std::make_shared<Forward>(), {.gradient_as_bucket_view = view});
      torch::optim::SGD sgd(wrapped.net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
      for (int step = 0; step < 4; ++step) {
        if (step % 2 == 0) {
          wrapped.forget_gradients();
        } else {
          for (auto& parameter : wrapped.net->parameters()) parameter.mutable_grad().zero_();
        }
        wrapped.backward(wrapped.model(samples(step + 9 * rank(), 3)).square().mean());
        const auto parameters = wrapped.net->parameters();
        const auto first = parameters.front().grad();
        const auto second = parameters[1].grad();
        EXPECT_EQ(first.storage().is_alias_of(second.storage()), view) << "step " << step;
        if (view && step == 2) EXPECT_THROW(first.detach_(), std::exception);
        sgd.step();
      }
      return test::bytes_of(*wrapped.net);
    };
    EXPECT_TRUE(at::equal(train(true), train(false)));
  });
}

at::Tensor running_mean_alone(int rank, int steps) {
  torch::nn::BatchNorm1d norm(3);
  for (int step = 0; step < steps; ++step) norm->forward(at::full({4, 3}, 10.0 * rank + step));
  return norm->running_mean;
}

TEST(DDP_008, BuffersAreRank0sBeforeEachTrainingForward) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Mixed>());
    for (int step = 0; step < 3; ++step) {
      wrapped.backward(wrapped.model(at::full({4, 3}, 10.0 * rank() + step)).sum());
      EXPECT_TRUE(test::equal_on_all_ranks(wrapped.net->mean_before)) << "step " << step;
      EXPECT_TRUE(at::equal(wrapped.net->mean_before, running_mean_alone(0, step))) << "step " << step;
      EXPECT_FALSE(test::equal_on_all_ranks(wrapped.net->norm->running_mean)) << "forward did not change them";
    }
  });
}

TEST(DDP_008, WithoutBroadcastEachRankKeepsItsOwn) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Mixed>(), {.broadcast_buffers = false});
    for (int step = 0; step < 3; ++step) {
      wrapped.backward(wrapped.model(at::full({4, 3}, 10.0 * rank() + step)).sum());
    }
    EXPECT_TRUE(at::equal(wrapped.net->norm->running_mean, running_mean_alone(rank(), 3)));
    EXPECT_FALSE(test::equal_on_all_ranks(wrapped.net->norm->running_mean));
  });
}

TEST(CaseJ5, TwoForwardsWithRunningStatisticsThenOneBackward) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Mixed>());
    const auto input = [](int call) { return at::arange(12, at::kFloat).view({4, 3}) * (1.0 + rank() + call); };
    const auto loss = wrapped.model(input(0)).square().sum() + wrapped.model(input(1)).square().sum();
    wrapped.backward(loss);
    EXPECT_TRUE(test::equal_on_all_ranks(wrapped.net->linear->weight.grad()));
  });
}

TEST(DDP_010, HandlerDefaults) {
  const config::DistributedDataParallelKwargs kwargs;
  EXPECT_EQ(kwargs.dim, 0);
  EXPECT_FALSE(kwargs.check_reduction);
  EXPECT_TRUE(kwargs.broadcast_buffers);
  EXPECT_EQ(kwargs.bucket_cap_mb, 25);
  EXPECT_FALSE(kwargs.find_unused_parameters);
  EXPECT_FALSE(kwargs.gradient_as_bucket_view);
  EXPECT_FALSE(kwargs.static_graph);
}

TEST(DDP_010, OnlyAModelThatIsTrainedIsWrapped) {
  lockstep::test::run_thread_ranks(2, [] {
    const auto strategy = make_strategy({.group = test::world(), .on_accelerator = true});
    const auto net = std::make_shared<Scale>();
    EXPECT_TRUE(strategy->prepare(net));
    net->w.set_requires_grad(false);
    EXPECT_FALSE(strategy->prepare(net)) << "frozen";
    EXPECT_FALSE(strategy->prepare(std::make_shared<torch::nn::TanhImpl>())) << "without parameters";
    EXPECT_TRUE(test::equal_on_all_ranks(at::ones({1}))) << "nobody waits for anybody";
  });
}

TEST(STATE_148, OnTheCpuAModelThatIsNotTrainedIsRefused) {
  lockstep::test::run_thread_ranks(2, [] {
    const auto strategy = make_strategy({.group = test::world()});
    EXPECT_THROW(strategy->prepare(std::make_shared<torch::nn::TanhImpl>()), RuntimeError) << "without parameters";
    const auto net = std::make_shared<Scale>();
    net->w.set_requires_grad(false);
    const auto text = lockstep::test::message_of<RuntimeError>([&] { strategy->prepare(net); });
    EXPECT_NE(text.find("expected a model with parameters that require a gradient"), std::string::npos) << text;
    EXPECT_NE(text.find("use the model without preparing it"), std::string::npos) << text;
    EXPECT_TRUE(test::equal_on_all_ranks(at::ones({1}))) << "nobody waits for anybody";
  });
}

TEST(DistributedDataParallel, RefusesModelsThatDifferOnEveryRankNamingWhatDiffers) {
  const auto expect_refusal = [](const std::function<std::shared_ptr<torch::nn::Module>(int)>& make,
                                 const std::vector<std::string>& words) {
    lockstep::test::run_thread_ranks(2, [&] {
      const auto strategy = make_strategy({.group = test::world()});
      const auto text = lockstep::test::message_of<CollectiveMismatch>([&] { strategy->prepare(make(rank())); });
      for (const auto& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in " << text;
      EXPECT_NE(text.find("Build the model alike"), std::string::npos) << text;
    });
  };
  expect_refusal([](int rank) { return std::make_shared<torch::nn::LinearImpl>(2, 3 + rank); },
                 {"rank 0: weight Float[3, 2]", "rank 1: weight Float[4, 2]"});
  expect_refusal(
      [](int rank) {
        auto net = std::make_shared<torch::nn::LinearImpl>(2, 3);
        net->to(rank == 0 ? at::kFloat : at::kDouble);
        return net;
      },
      {"rank 0: weight Float[3, 2]", "rank 1: weight Double[3, 2]"});
  expect_refusal(
      [](int rank) { return std::make_shared<torch::nn::LinearImpl>(torch::nn::LinearOptions(2, 3).bias(rank == 0)); },
      {"rank 0: bias Float[3]", "rank 1: nothing"});
  expect_refusal(
      [](int rank) {
        auto net = std::make_shared<Scale>();
        net->w.set_requires_grad(rank == 0);
        return net;
      },
      {"rank 0: w Float[1]", "rank 1: w Float[1], frozen"});
  expect_refusal(
      [](int rank) -> std::shared_ptr<torch::nn::Module> {
        if (rank == 0) return std::make_shared<Scale>();
        return std::make_shared<torch::nn::TanhImpl>();
      },
      {"rank 0: w Float[1]", "rank 1: nothing"});
}

TEST(DistributedDataParallel, AForwardOfTheModuleItselfIsWarnedAboutOnce) {
  testing::internal::CaptureStderr();
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped called(std::make_shared<Scale>()), passed_by(std::make_shared<Scale>());
    for (int step = 0; step < 2; ++step) {
      called.backward(called.model(at::ones({1})).sum());
      passed_by.backward(passed_by.net->forward(at::ones({1})).sum());
    }
  });
  const auto text = testing::internal::GetCapturedStderr();
  std::size_t count = 0;
  for (auto at = text.find("not model->forward(x)"); at != std::string::npos; at = text.find("not model->", at + 1))
    ++count;
  EXPECT_EQ(count, 2U) << "one for each rank: " << text;
}

}  // namespace
}  // namespace lockstep::parallel
