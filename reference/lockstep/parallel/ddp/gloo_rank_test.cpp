// DDP between processes, over Gloo: what the tests between threads say holds here too. One world for all of it.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp/ddp_test_support.h"
#include "run_ranks.h"

namespace lockstep::parallel {
namespace {

using test::account;
using test::Rows;
using test::Scale;
using test::Wrapped;

constexpr int kRanks = 3;

int rank() { return test::world().rank(); }

void expect_equal_weights_after_wrapping() {
  const auto net = std::make_shared<Rows>(std::vector<std::int64_t>{300000, 5});
  {
    const at::NoGradGuard no_grad;
    for (auto& row : net->rows) row.fill_(rank() + 0.1);
  }
  EXPECT_FALSE(test::equal_on_all_ranks(net->rows[0]));
  const Wrapped wrapped(net);
  EXPECT_TRUE(test::equal_on_all_ranks(test::bytes_of(*net)));
  EXPECT_FLOAT_EQ(net->rows[0][0].item<float>(), 0.1F);
}

void expect_mean(const config::DistributedDataParallelKwargs& kwargs) {
  const Wrapped wrapped(std::make_shared<Scale>(), kwargs);
  for (int step = 0; step < 3; ++step) {
    wrapped.forget_gradients();
    wrapped.backward(wrapped.model(at::full({1}, 2.0 * (rank() + 1))).sum());
    EXPECT_EQ(wrapped.net->w.grad().item<float>(), 4.0F);
  }
}

void expect_traffic_of_a_window() {
  const Wrapped wrapped(std::make_shared<Rows>(std::vector<std::int64_t>{300000, 5}), {.bucket_cap_mb = 1});
  for (int step = 0; step < 2; ++step) wrapped.backward(wrapped.model(at::ones({1})).sum());
  const auto before = account().traffic();
  {
    const modules::SynchronisationScope local(*wrapped.engine, false);
    wrapped.backward(wrapped.model(at::ones({1})).sum());
  }
  EXPECT_TRUE(account().traffic().since(before).counts().empty());
  wrapped.backward(wrapped.model(at::ones({1})).sum());
  EXPECT_EQ(account().traffic().since(before).volume(), 2 * 300005);
}

void expect_same_bits_everywhere() {
  const Wrapped wrapped(std::make_shared<Rows>(std::vector<std::int64_t>{70000, 5, 3}));
  for (int step = 0; step < 5; ++step) {
    wrapped.forget_gradients();
    wrapped.backward(wrapped.model(at::full({1}, 0.01 * (rank() + step + 1))).sum());
    const at::NoGradGuard no_grad;
    for (auto& row : wrapped.net->rows) row.sub_(row.grad(), 0.1);
    EXPECT_TRUE(test::equal_on_all_ranks(test::bytes_of(*wrapped.net))) << "step " << step;
  }
}

// Two buckets, each of them several collectives: they meet in the same order on all ranks, whichever is quicker.
void expect_hooks_to_agree(config::DdpCommunicationHookType hook) {
  const std::vector<std::int64_t> sizes{300000, 270000};
  const Wrapped averaged(std::make_shared<Rows>(sizes), {.bucket_cap_mb = 1});
  const Wrapped wrapped(std::make_shared<Rows>(sizes),
                        {.bucket_cap_mb = 1, .comm_hook = hook, .comm_state_option = {.start_powerSGD_iter = 2}});
  for (int step = 0; step < 4; ++step) {
    for (const auto* each : {&averaged, &wrapped}) {
      each->forget_gradients();
      each->backward(each->model(at::full({1}, rank() + 1.0)).sum());
    }
    EXPECT_EQ(wrapped.engine->buckets().size(), step == 0 ? 1U : 2U);
    const auto expected = test::gradients_of(*averaged.net), gradients = test::gradients_of(*wrapped.net);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(test::equal_on_all_ranks(gradients[i])) << "step " << step;
      EXPECT_NEAR((gradients[i].sum() / expected[i].sum()).item<double>(), 1.0, 0.01) << "step " << step;
    }
  }
}

TEST(DDP_009, HooksAgreeBetweenProcesses) {
  using enum config::DdpCommunicationHookType;
  lockstep::test::run_ranks(kRanks, [] {
    for (const auto hook : {fp16, bf16, power_sgd, batched_power_sgd}) expect_hooks_to_agree(hook);
  });
}

TEST(DDP_002, HoldsBetweenProcesses) {
  lockstep::test::run_ranks(kRanks, [] {
    expect_equal_weights_after_wrapping();
    expect_mean({});
    expect_mean({.find_unused_parameters = true});
    expect_mean({.gradient_as_bucket_view = true});
    expect_mean({.static_graph = true});
    expect_traffic_of_a_window();
    expect_same_bits_everywhere();
  });
}

}  // namespace
}  // namespace lockstep::parallel
