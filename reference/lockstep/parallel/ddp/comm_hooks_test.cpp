#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp/ddp_test_support.h"
#include "run_ranks.h"

// Options and traffic of the communication hooks; their numbers are in comm_hooks_golden_test.cpp.
namespace lockstep::parallel {
namespace {

using config::DdpCommunicationHookType;
using test::account;
using test::Branch;
using test::Branches;
using test::Rows;
using test::Scale;
using test::Wrapped;

int rank() { return test::world().rank(); }

/// One matrix.
struct Matrix : torch::nn::Module {
  explicit Matrix(std::int64_t side) { w = register_parameter("w", at::ones({side, side})); }
  at::Tensor forward(const at::Tensor& x) { return (w * x).sum(); }
  at::Tensor w;
};

TEST(KW_009, StateDefaults) {
  const config::DistributedDataParallelKwargs kwargs;
  EXPECT_EQ(kwargs.comm_hook, DdpCommunicationHookType::no);
  EXPECT_EQ(kwargs.comm_wrapper, DdpCommunicationHookType::no);
  const config::PowerSgdOptions options;
  EXPECT_EQ(options.matrix_approximation_rank, 1);
  EXPECT_EQ(options.start_powerSGD_iter, 1000);
  EXPECT_EQ(options.min_compression_rate, 2);
  EXPECT_TRUE(options.use_error_feedback);
  EXPECT_TRUE(options.warm_start);
  EXPECT_EQ(options.orthogonalization_epsilon, 0);
  EXPECT_EQ(options.random_seed, 0U);
  EXPECT_EQ(options.compression_stats_logging_frequency, 10000);
  EXPECT_FALSE(options.batch_tensors_with_same_shape);
}

TEST(KW_010, PowerSgdStartsAfterBucketsAreFinal) {
  lockstep::test::run_thread_ranks(2, [] {
    const auto with = [](bool feedback, bool warm) {
      return config::DistributedDataParallelKwargs{
          .comm_hook = DdpCommunicationHookType::power_sgd,
          .comm_state_option = {.start_powerSGD_iter = 1, .use_error_feedback = feedback, .warm_start = warm}};
    };
    const auto net = std::make_shared<Scale>();
    EXPECT_THROW(Wrapped(net, with(true, false)), InvalidArgument);
    EXPECT_THROW(Wrapped(net, with(false, true)), InvalidArgument);
    EXPECT_NO_THROW(Wrapped(net, with(false, false)));
    EXPECT_THROW(Wrapped(net, {.comm_wrapper = DdpCommunicationHookType::power_sgd}), InvalidArgument);
    EXPECT_THROW(Wrapped(net, {.dim = 1}), NotSupported);
  });
}

// A gradient of rank 1 loses nothing: the approximation is its mean.
TEST(DDP_009, PowerSgdKeepsWhatHasLowRank) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Matrix>(16), {.comm_hook = DdpCommunicationHookType::power_sgd,
                                                         .comm_state_option = {.start_powerSGD_iter = 2}});
    const auto row = at::arange(1, 17, at::kFloat), column = at::linspace(-1, 1, 16).unsqueeze(1);
    for (int step = 0; step < 5; ++step) {
      wrapped.forget_gradients();
      wrapped.backward(wrapped.model((rank() + 1.0) * column * row));
      // Sums of 16 products in single precision, of numbers up to 24: 16 * 24 * 2^-24 and a little.
      EXPECT_TRUE(at::allclose(wrapped.net->w.grad(), 1.5 * column * row, 0, 1e-4)) << "step " << step;
    }
  });
}

/// Two, in buckets of their own, for their dtypes differ.
struct TwoMatrices : torch::nn::Module {
  TwoMatrices() {
    single = register_parameter("single", at::ones({16, 16}));
    twice = register_parameter("twice", at::ones({12, 12}, at::kDouble));
  }
  at::Tensor forward(const at::Tensor& x) {
    return (single * x).sum() + (twice * x.narrow(0, 0, 12).narrow(1, 0, 12)).sum();
  }
  at::Tensor single, twice;
};

// Where hooks post collectives from callbacks, those of several buckets can get into each other's way.
TEST(DDP_009, PowerSgdReducesSeveralBuckets) {
  lockstep::test::run_thread_ranks(2, [] {
    for (const auto hook : {DdpCommunicationHookType::power_sgd, DdpCommunicationHookType::fp16}) {
      const Wrapped wrapped(std::make_shared<TwoMatrices>(),
                            {.comm_hook = hook, .comm_state_option = {.start_powerSGD_iter = 2}});
      const auto x = at::arange(1, 17, at::kFloat) * at::arange(1, 17, at::kFloat).unsqueeze(1);  // up to 256
      for (int step = 0; step < 4; ++step) {
        wrapped.forget_gradients();
        wrapped.backward(wrapped.model((2.0 * rank() + 1.0) * x));
        EXPECT_EQ(wrapped.engine->buckets().size(), 2U);
        // Integers up to 768 are exact in fp16; sums of 16 products of them in single precision err by 1e-3 at most.
        EXPECT_TRUE(at::allclose(wrapped.net->single.grad(), 2.0 * x, 0, 1e-2)) << "step " << step;
        EXPECT_TRUE(at::allclose(wrapped.net->twice.grad(), 2.0 * x.narrow(0, 0, 12).narrow(1, 0, 12).to(at::kDouble),
                                 0, 1e-2));
      }
    }
  });
}

// Error feedback: what a step loses comes later, so that the sum over steps is nearer to the true sum.
TEST(DDP_009, ErrorFeedbackMakesUpForWhatWasLost) {
  lockstep::test::run_thread_ranks(2, [] {
    const auto gradient = at::eye(16) * at::arange(1, 17, at::kFloat) * (rank() + 1.0);
    const auto distance = [&](bool feedback) {
      const Wrapped wrapped(std::make_shared<Matrix>(16),
                            {.comm_hook = DdpCommunicationHookType::power_sgd,
                             .comm_state_option = {.start_powerSGD_iter = 2, .use_error_feedback = feedback}});
      auto sum = at::zeros({16, 16});
      for (int step = 0; step < 40; ++step) {
        wrapped.forget_gradients();
        wrapped.backward(wrapped.model(gradient));
        sum += wrapped.net->w.grad();
      }
      const auto mean = at::eye(16) * at::arange(1, 17, at::kFloat) * 1.5;
      return (sum / 40 - mean).norm().item<double>();
    };
    EXPECT_LT(distance(true), 0.5 * distance(false));
  });
}

TEST(DDP_009, PowerSgdSendsTheFactorsAlone) {
  lockstep::test::run_thread_ranks(2, [] {
    const auto volume_of_a_step = [](const config::DistributedDataParallelKwargs& kwargs) {
      const Wrapped wrapped(std::make_shared<Matrix>(64), kwargs);
      for (int step = 0; step < 3; ++step) wrapped.backward(wrapped.model(at::ones({64, 64})));
      const auto before = account().traffic();
      wrapped.backward(wrapped.model(at::ones({64, 64})));
      return account().traffic().since(before).volume();
    };
    const config::PowerSgdOptions options{.matrix_approximation_rank = 2, .start_powerSGD_iter = 2};
    EXPECT_EQ(volume_of_a_step({}), 2 * 64 * 64);
    EXPECT_EQ(volume_of_a_step({.comm_hook = DdpCommunicationHookType::power_sgd, .comm_state_option = options}),
              2 * 2 * (64 + 64));
    EXPECT_EQ(
        volume_of_a_step({.comm_hook = DdpCommunicationHookType::batched_power_sgd, .comm_state_option = options}),
        2 * 2 * (64 + 64));
  });
}

// What a hook remembers belongs to its model.
TEST(DDP_009, ModelsHaveHooksOfTheirOwn) {
  lockstep::test::run_thread_ranks(2, [] {
    const config::DistributedDataParallelKwargs power_sgd{.comm_hook = DdpCommunicationHookType::power_sgd,
                                                          .comm_state_option = {.start_powerSGD_iter = 2}};
    const Wrapped alone(std::make_shared<Matrix>(8), power_sgd), one(std::make_shared<Matrix>(8), power_sgd),
        other(std::make_shared<Matrix>(8), {.comm_hook = DdpCommunicationHookType::fp16});
    for (int step = 0; step < 6; ++step) {
      const auto x = at::arange(64, at::kFloat).view({8, 8}).sin() * (step + rank() + 1.0);
      for (const auto* wrapped : {&alone, &one, &other}) wrapped->forget_gradients();
      alone.backward(alone.model(x));
      other.backward(other.model(x + 1.0));
      one.backward(one.model(x));
      EXPECT_TRUE(at::equal(one.net->w.grad(), alone.net->w.grad())) << "step " << step;
      EXPECT_TRUE(test::equal_on_all_ranks(other.net->w.grad()));
    }
  });
}

TEST(DDP_009, AnOverflowEndsWithItsStep) {
  lockstep::test::run_thread_ranks(2, [] {
    for (const auto hook : {DdpCommunicationHookType::power_sgd, DdpCommunicationHookType::batched_power_sgd}) {
      const Wrapped wrapped(std::make_shared<Matrix>(8),
                            {.comm_hook = hook, .comm_state_option = {.start_powerSGD_iter = 2}});
      for (int step = 0; step < 6; ++step) {
        wrapped.forget_gradients();
        auto x = at::arange(64, at::kFloat).view({8, 8}).sin() * (rank() + 1.0);
        if (step == 3 && rank() == 1) x[2][3] = std::numeric_limits<float>::infinity();
        wrapped.backward(wrapped.model(x));
        EXPECT_EQ(at::isfinite(wrapped.net->w.grad()).all().item<bool>(), step != 3) << "step " << step;
      }
    }
  });
}

// A parameter that no rank uses keeps what it had; one that a single rank uses is averaged with zeros.
TEST(DDP_009, UnusedParametersAreLeftAlone) {
  lockstep::test::run_thread_ranks(2, [] {
    for (auto hook : {DdpCommunicationHookType::fp16, DdpCommunicationHookType::bf16,
                      DdpCommunicationHookType::power_sgd, DdpCommunicationHookType::batched_power_sgd}) {
      const Wrapped wrapped(
          std::make_shared<Branches>(),
          {.find_unused_parameters = true, .comm_hook = hook, .comm_state_option = {.start_powerSGD_iter = 2}});
      for (int step = 0; step < 5; ++step) {
        wrapped.forget_gradients();
        const bool uses_b = step >= 3 && rank() == 1;
        wrapped.backward(wrapped.model(at::full({1, 1}, 2.0), uses_b ? Branch::both : Branch::a).sum());
        EXPECT_NEAR(wrapped.net->a->weight.grad().item<float>(), 2.0, 1e-5) << "step " << step;
        ASSERT_EQ(wrapped.net->b->weight.grad().defined(), step >= 3) << "step " << step;
        if (step >= 3) EXPECT_NEAR(wrapped.net->b->weight.grad().item<float>(), 1.0, 1e-2) << "step " << step;
        EXPECT_TRUE(test::equal_on_all_ranks(wrapped.net->a->weight.grad()));
      }
    }
  });
}

TEST(DDP_009, WorksWithTheSearchForUnusedParametersStaticGraphsAndAccumulation) {
  lockstep::test::run_thread_ranks(2, [] {
    for (auto hook : {DdpCommunicationHookType::fp16, DdpCommunicationHookType::bf16,
                      DdpCommunicationHookType::power_sgd, DdpCommunicationHookType::batched_power_sgd}) {
      for (const bool is_static : {false, true}) {
        const Wrapped wrapped(std::make_shared<Scale>(), {.find_unused_parameters = !is_static,
                                                          .static_graph = is_static,
                                                          .comm_hook = hook,
                                                          .comm_state_option = {.start_powerSGD_iter = 2}});
        for (int step = 0; step < 4; ++step) {
          wrapped.forget_gradients();
          {
            const modules::SynchronisationScope local(*wrapped.engine, false);
            wrapped.backward(wrapped.model(at::full({1}, 1.0 + rank())).sum());
          }
          wrapped.backward(wrapped.model(at::full({1}, 1.0 + rank())).sum());
          EXPECT_NEAR(wrapped.net->w.grad().item<float>(), 3.0, 1e-5) << "step " << step;  // all exact in bf16
        }
      }
    }
  });
}

}  // namespace
}  // namespace lockstep::parallel
