// Ranks with unequal numbers of inputs: what the engine alone makes of them, between threads.
#include "lockstep/parallel/ddp/join.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp/ddp_test_support.h"
#include "run_ranks.h"

namespace lockstep::parallel {
namespace {

using lockstep::test::message_of;
using lockstep::test::run_thread_ranks;
using test::Branch;
using test::Branches;
using test::Rows;
using test::Scale;
using test::Wrapped;

int rank() { return test::world().rank(); }

template <typename Net>
Join join_of(const Wrapped<Net>& wrapped, JoinDivisor divisor = JoinDivisor::world_size) {
  return Join({wrapped.engine}, test::world(), divisor);
}

template <typename Net>
void descend(const Wrapped<Net>& wrapped) {
  const at::NoGradGuard no_grad;
  for (auto& parameter : wrapped.net->parameters()) {
    if (parameter.grad().defined()) parameter.sub_(parameter.grad(), 0.1);
  }
}

template <typename Net>
void step(const Wrapped<Net>& wrapped, const at::Tensor& x) {
  wrapped.forget_gradients();
  wrapped.backward(wrapped.model(x).sum());
  descend(wrapped);
}

// Rank r takes num_steps[r] steps.
template <typename Net>
void train(const Wrapped<Net>& wrapped, const std::vector<int>& num_steps,
           JoinDivisor divisor = JoinDivisor::world_size) {
  auto join = join_of(wrapped, divisor);
  for (int i = 0; i < num_steps[static_cast<std::size_t>(rank())]; ++i) {
    step(wrapped, at::full({1}, 0.1 * (rank() + i + 1)));
  }
  join.finish();
}

template <typename Net>
void expect_same_model(const Wrapped<Net>& wrapped) {
  EXPECT_TRUE(test::equal_on_all_ranks(test::bytes_of(*wrapped.net)));
}

TEST(ACC_044, TheOddStepIsDividedByTheWorldSize) {
  run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Scale>());
    auto join = join_of(wrapped);
    for (int i = rank() + 1; i <= 5; i += 2) {
      wrapped.forget_gradients();
      wrapped.backward(wrapped.model(at::full({1}, static_cast<double>(i))).sum());
      EXPECT_EQ(wrapped.net->w.grad().item<float>(), i == 5 ? 2.5F : i <= 2 ? 1.5F : 3.5F);
    }
    join.finish();
  });
}

TEST(ACC_044, OrByTheNumberOfRanksThatHadInputs) {
  run_thread_ranks(3, [] {
    const Wrapped wrapped(std::make_shared<Scale>());
    {
      auto join = join_of(wrapped, JoinDivisor::ranks_with_inputs);
      for (int i = 0; i < rank() + 1; ++i) {
        wrapped.forget_gradients();
        wrapped.backward(wrapped.model(at::full({1}, 6.0 * (rank() + 1))).sum());
        EXPECT_EQ(wrapped.net->w.grad().item<float>(), i == 0 ? 12.0F : i == 1 ? 15.0F : 18.0F);
      }
      join.finish();
    }
    wrapped.forget_gradients();
    wrapped.backward(wrapped.model(at::full({1}, 6.0 * (rank() + 1))).sum());
    EXPECT_EQ(wrapped.net->w.grad().item<float>(), 12.0F) << "as before the scope";
  });
}

// Whoever runs out, and however early: before the buckets are made anew, between, or without a single step.
TEST(ACC_044, AllRanksEndWithTheSameModel) {
  run_thread_ranks(3, [] {
    for (const auto& num_steps : std::vector<std::vector<int>>{{3, 3, 3}, {1, 3, 2}, {0, 4, 0}, {4, 0, 1}, {0, 0, 0}}) {
      for (const bool views : {false, true}) {
        const Wrapped wrapped(std::make_shared<Rows>(std::vector<std::int64_t>{300000, 270000, 3}),
                              {.bucket_cap_mb = 1, .gradient_as_bucket_view = views});
        train(wrapped, num_steps);
        expect_same_model(wrapped);
        step(wrapped, at::full({1}, 0.1 * (rank() + 1)));
        expect_same_model(wrapped);
      }
    }
  });
}

TEST(ACC_044, ARankWithoutInputsCountsAsOneWithGradientsOfZero) {
  run_thread_ranks(2, [] {
    const auto sizes = std::vector<std::int64_t>{300000, 7};
    const Wrapped joined(std::make_shared<Rows>(sizes), {.bucket_cap_mb = 1});
    const Wrapped padded(std::make_shared<Rows>(sizes), {.bucket_cap_mb = 1});
    train(joined, {4, 2});
    for (int i = 0; i < 4; ++i) {
      padded.forget_gradients();
      const double weight = rank() == 1 && i >= 2 ? 0 : 1;
      padded.backward(padded.model(at::full({1}, 0.1 * (rank() + i + 1))).sum() * weight);
      descend(padded);
    }
    EXPECT_TRUE(at::equal(test::bytes_of(*joined.net), test::bytes_of(*padded.net)));
  });
}

/// Batch norm without learnt numbers before a weight.
struct Normed : torch::nn::Module {
  Normed() {
    norm = register_module("norm", torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(1).affine(false)));
    w = register_parameter("w", at::ones({1}));
  }
  at::Tensor forward(const at::Tensor& x) { return norm->forward(x) * w; }
  torch::nn::BatchNorm1d norm{nullptr};
  at::Tensor w;
};

at::Tensor two_of(double mean) { return at::stack({at::full({1}, mean - 1), at::full({1}, mean + 1)}); }

TEST(ACC_044, BuffersAreThoseOfTheFirstRankThatHasInputs) {
  run_thread_ranks(3, [] {
    const Wrapped wrapped(std::make_shared<Normed>());
    auto join = join_of(wrapped);
    const int num_steps = rank() == 0 ? 1 : 3;
    for (int i = 0; i < num_steps; ++i) step(wrapped, two_of(10.0 * (rank() + 1)));
    join.finish();
    // Each forward keeps 0.9 of the mean that it was given. In the first, rank 1 adds a tenth of its batch's 20 to rank
    // 0's zero; from then on what it is given is its own.
    EXPECT_EQ(wrapped.net->norm->num_batches_tracked.item<std::int64_t>(), 3);
    EXPECT_NEAR(wrapped.net->norm->running_mean.item<double>(), 0.9 * (0.9 * 2 + 2) + 2, 1e-5);
    expect_same_model(wrapped);
  });
}

TEST(ACC_044, BuffersThatEachRankKeepsStayItsOwn) {
  run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Normed>(), {.broadcast_buffers = false});
    auto join = join_of(wrapped);
    for (int i = 0; i < 2 - rank(); ++i) step(wrapped, two_of(10.0));
    join.finish();
    EXPECT_EQ(wrapped.net->norm->num_batches_tracked.item<std::int64_t>(), 2 - rank());
    EXPECT_TRUE(test::equal_on_all_ranks(wrapped.net->w));
  });
}

TEST(ACC_044, ParametersThatNobodyUsesKeepTheirGradientWhereOthersHaveRunOut) {
  run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Branches>(), {.find_unused_parameters = true});
    auto join = join_of(wrapped);
    for (int i = 0; i < 4 - 3 * rank(); ++i) {
      wrapped.forget_gradients();
      wrapped.backward(wrapped.model(at::full({1, 1}, 2.0), i == 2 ? Branch::both : Branch::a).sum());
      EXPECT_EQ(wrapped.net->a->weight.grad().item<float>(), i == 0 ? 2.0F : 1.0F);
      EXPECT_EQ(wrapped.net->b->weight.grad().defined(), i == 2);
      if (i == 2) EXPECT_EQ(wrapped.net->b->weight.grad().item<float>(), 1.0F);
      descend(wrapped);
    }
    join.finish();
    expect_same_model(wrapped);
  });
}

TEST(ACC_044, MicroBatchesWithoutSynchronisationNeedNoPartner) {
  run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Scale>());
    auto join = join_of(wrapped);
    const auto micro_step = [&wrapped](double x, bool synchronise) {
      const modules::SynchronisationScope scope(*wrapped.engine, synchronise);
      wrapped.backward(wrapped.model(at::full({1}, x)).sum());
    };
    const auto before = test::account().traffic();
    if (rank() == 0) micro_step(1, false);
    micro_step(2, false);
    EXPECT_TRUE(test::account().traffic().since(before).counts().empty());
    micro_step(3, true);
    EXPECT_EQ(wrapped.net->w.grad().item<float>(), 5.5F);
    if (rank() == 1) {
      wrapped.forget_gradients();
      micro_step(4, false);
      micro_step(5, true);
      EXPECT_EQ(wrapped.net->w.grad().item<float>(), 4.5F);
    }
    join.finish();
  });
}

TEST(ACC_044, AReductionTriggeredInBackwardIsShadowedToo) {
  run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Scale>());
    auto join = join_of(wrapped);
    for (int i = 0; i < 3 - 2 * rank(); ++i) {
      wrapped.forget_gradients();
      at::Tensor loss;
      {
        const modules::SynchronisationScope local(*wrapped.engine, false);
        loss = wrapped.model(at::full({1}, 4.0)).sum();
      }
      wrapped.engine->after_forward({});
      wrapped.backward(loss);
      EXPECT_EQ(wrapped.net->w.grad().item<float>(), i == 0 ? 4.0F : 2.0F);
    }
    join.finish();
    wrapped.forget_gradients();
    wrapped.backward(wrapped.model(at::full({1}, rank() + 1.0)).sum());
    EXPECT_EQ(wrapped.net->w.grad().item<float>(), 1.5F) << "an ordinary forward afterwards";
  });
}

TEST(ACC_044, HooksAreShadowedToo) {
  using enum config::DdpCommunicationHookType;
  run_thread_ranks(3, [] {
    for (const auto hook : {fp16, bf16, power_sgd, batched_power_sgd}) {
      const Wrapped wrapped(std::make_shared<Rows>(std::vector<std::int64_t>{300000, 270000}),
                            {.bucket_cap_mb = 1, .comm_hook = hook, .comm_state_option = {.start_powerSGD_iter = 2}});
      train(wrapped, {2, 5, 4});
      expect_same_model(wrapped);
      step(wrapped, at::full({1}, 0.1 * (rank() + 1)));
      expect_same_model(wrapped);
    }
  });
}

TEST(ACC_044, ModelsAreShadowedInTheOrderOfTheirUse) {
  run_thread_ranks(2, [] {
    const Wrapped first(std::make_shared<Scale>());
    const Wrapped second(std::make_shared<Rows>(std::vector<std::int64_t>{3, 2}));
    Join join({first.engine, second.engine}, test::world(), JoinDivisor::world_size);
    for (int i = 0; i < 1 + 2 * rank(); ++i) {
      step(second, at::ones({1}));
      if (i != 1) step(first, at::ones({1}));
    }
    join.finish();
    expect_same_model(first);
    expect_same_model(second);
    EXPECT_FLOAT_EQ(first.net->w.item<float>(), 1 - 0.1F - 0.05F);
  });
}

TEST(ACC_044, WhatCannotBeShadowedIsRefusedOnAllRanks) {
  run_thread_ranks(2, [] {
    const Wrapped fixed(std::make_shared<Scale>(), {.static_graph = true});
    const auto text = message_of<NotSupported>([&] { join_of(fixed); });
    EXPECT_NE(text.find("static_graph"), std::string::npos) << text;
    const Wrapped hooked(std::make_shared<Scale>(), {.comm_hook = config::DdpCommunicationHookType::fp16});
    const auto hook = message_of<NotSupported>([&] { join_of(hooked, JoinDivisor::ranks_with_inputs); });
    EXPECT_NE(hook.find("divide_by_initial_world_size"), std::string::npos) << hook;
    const Wrapped wrapped(std::make_shared<Scale>());
    const auto outer = join_of(wrapped);
    message_of<InvalidArgument>([&] { join_of(wrapped); });
    step(fixed, at::ones({1}));
    expect_same_model(fixed);
  });
}

TEST(ACC_044, TwoForwardsBeforeABackwardAreAnErrorAndNoHang) {
  run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Scale>());
    auto join = join_of(wrapped);
    static_cast<void>(wrapped.model(at::ones({1})));
    const auto text = message_of<RuntimeError>([&] { static_cast<void>(wrapped.model(at::ones({1}))); });
    EXPECT_NE(text.find("no_sync"), std::string::npos) << text;
    message_of<RuntimeError>([&] { join.finish(); });
  });
}

TEST(ACC_044, RanksThatDoDifferentThingsAllSaySo) {
  run_thread_ranks(3, [] {
    const Wrapped first(std::make_shared<Scale>());
    const Wrapped second(std::make_shared<Scale>());
    Join join({first.engine, second.engine}, test::world(), JoinDivisor::world_size);
    const auto text = message_of<CollectiveMismatch>([&] {
      if (rank() == 2) {
        join.finish();
      } else {
        static_cast<void>((rank() == 0 ? first : second).model(at::ones({1})));
      }
    });
    EXPECT_NE(text.find("rank 0: reduces the gradients of model 0"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1: reduces the gradients of model 1"), std::string::npos) << text;
  });
}

}  // namespace
}  // namespace lockstep::parallel
