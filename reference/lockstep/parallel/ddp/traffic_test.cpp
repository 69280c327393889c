// What training costs in communication, exactly, from the rank's account.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "lockstep/accounting/account.h"
#include "lockstep/parallel/ddp/ddp_test_support.h"
#include "run_ranks.h"

namespace lockstep::parallel {
namespace {

using test::account;
using test::Rows;
using test::Scale;
using test::Wrapped;

const std::vector<std::int64_t> kSizes{300000, 7, 300000, 20};
constexpr std::int64_t kElements = 600027;  // Psi

int rank() { return test::world().rank(); }

template <typename Call>
accounting::Traffic traffic_of(Call&& call) {
  const auto before = account().traffic();
  call();
  return account().traffic().since(before);
}

void micro_step(const Wrapped<Rows>& wrapped, bool synchronise, int of = 1) {
  const modules::SynchronisationScope scope(*wrapped.engine, synchronise);
  wrapped.backward(wrapped.model(at::full({1}, 0.1 * (rank() + 1))).sum() / of);
}

// Two whole steps: from the third on, buckets are as they stay.
void settle(const Wrapped<Rows>& wrapped) {
  for (int step = 0; step < 2; ++step) micro_step(wrapped, true);
  wrapped.forget_gradients();
}

TEST(DDP_011, NoCollectiveBeforeTheLastBackwardOfAWindowWhichReducesTheSum) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped whole(std::make_shared<Rows>(kSizes));
    micro_step(whole, true);
    const Wrapped wrapped(std::make_shared<Rows>(kSizes), {.bucket_cap_mb = 1});
    for (int window = 0; window < 3; ++window) {
      wrapped.forget_gradients();
      for (int step = 1; step <= 4; ++step) {
        const auto traffic = traffic_of([&] { micro_step(wrapped, step == 4, 4); });
        if (step < 4) EXPECT_TRUE(traffic.counts().empty()) << "window " << window << ", step " << step;
        if (step == 4) EXPECT_EQ(traffic.total("allreduce").elements, kElements) << "window " << window;
      }
      // Four times a quarter of the same loss is the loss: one step on the fourfold batch.
      const auto sum = test::gradients_of(*wrapped.net);
      const auto once = test::gradients_of(*whole.net);
      for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_TRUE(at::allclose(sum[i], once[i], 1.3e-6, 1e-5));
    }
  });
}

TEST(DDP_012, AStepCosts2PsiWhateverTheNumberOfMicroSteps) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Rows>(kSizes), {.bucket_cap_mb = 1});
    settle(wrapped);
    for (const int k : {1, 2, 5}) {
      const auto traffic = traffic_of([&] {
        for (int step = 1; step <= k; ++step) micro_step(wrapped, step == k, k);
      });
      EXPECT_EQ(traffic.volume(), 2 * kElements) << k;
      EXPECT_EQ(traffic.total().elements, kElements) << "nothing but the all-reduces";
      EXPECT_EQ(traffic.total("allreduce").calls, 2) << "one for each bucket";
      EXPECT_EQ(traffic.total("allreduce").bytes, 4 * kElements);
    }
  });
}

TEST(DDP_012, WithoutNoSyncItCostsThatInEveryMicroStep) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Rows>(kSizes));
    settle(wrapped);
    const auto traffic = traffic_of([&] {
      for (int step = 0; step < 5; ++step) micro_step(wrapped, true, 5);
    });
    EXPECT_EQ(traffic.volume(), 5 * 2 * kElements);
  });
}

TEST(DDP_012, ConstructionSendsTheStateOnceAndReducesNothing) {
  lockstep::test::run_thread_ranks(2, [] {
    const auto construction = traffic_of([] { Wrapped<Rows>{std::make_shared<Rows>(kSizes)}; });
    std::int64_t floats = 0;
    for (const auto& [key, count] : construction.counts()) floats += key.dtype == "Float" ? count.elements : 0;
    EXPECT_EQ(floats, kElements);
    EXPECT_EQ(construction.total("broadcast").elements, kElements);
    EXPECT_EQ(construction.total("allreduce").calls, 0);
  });
}

TEST(DDP_012, TheSecondForwardTellsTheOrderOfTheBucketsAndTheSearchCostsOneMark) {
  lockstep::test::run_thread_ranks(2, [] {
    const Wrapped wrapped(std::make_shared<Rows>(kSizes));
    micro_step(wrapped, true);
    const auto second = traffic_of([&] { micro_step(wrapped, true); });
    EXPECT_EQ(second.total("allreduce").elements, kElements);
    EXPECT_GT(second.total("broadcast").elements, 0) << "indices of the buckets";
    EXPECT_LT(second.total("broadcast").elements, 20);
    const Wrapped searching(std::make_shared<Rows>(kSizes), {.find_unused_parameters = true});
    settle(searching);
    const auto traffic = traffic_of([&] { micro_step(searching, true); });
    for (const auto& [key, count] : traffic.counts()) {
      EXPECT_EQ(key.op, "allreduce");
      EXPECT_EQ(count.elements, key.dtype == "Float" ? kElements : static_cast<std::int64_t>(kSizes.size()));
    }
  });
}

TEST(DDP_012, ReducedEventsNameEveryParameterOnceAStep) {
  lockstep::test::run_thread_ranks(3, [] {
    std::vector<accounting::Reduced> reduced;
    const auto subscription = account().subscribe([&reduced](const auto&, const accounting::Event& event) {
      if (const auto* one = std::get_if<accounting::Reduced>(&event)) reduced.push_back(*one);
    });
    const Wrapped wrapped(std::make_shared<Rows>(kSizes), {.bucket_cap_mb = 1});
    EXPECT_TRUE(reduced.empty()) << "construction";
    for (int step = 0; step < 3; ++step) {
      reduced.clear();
      micro_step(wrapped, false);
      EXPECT_TRUE(reduced.empty());
      micro_step(wrapped, true);
      std::vector<std::string> names;
      std::int64_t bytes = 0;
      for (const auto& one : reduced) {
        EXPECT_EQ(one.divisor, 3);
        EXPECT_EQ(one.group, "world");
        names.insert(names.end(), one.parameters.begin(), one.parameters.end());
        bytes += one.bytes;
      }
      std::ranges::sort(names);
      EXPECT_EQ(names, (std::vector<std::string>{"p0", "p1", "p2", "p3"})) << "step " << step;
      EXPECT_EQ(bytes, 4 * kElements);
      EXPECT_EQ(reduced.size(), step == 0 ? 1U : 2U);
    }
  });
}

// What travels is a shorter copy of the bucket, or the bucket of a model that is that short already.
TEST(DDP_012, ReducedEventsNameTheParametersOfCompressedBucketsToo) {
  using enum config::DdpCommunicationHookType;
  lockstep::test::run_thread_ranks(2, [] {
    std::vector<accounting::Reduced> reduced;
    const auto subscription = account().subscribe([&reduced](const auto&, const accounting::Event& event) {
      if (const auto* one = std::get_if<accounting::Reduced>(&event)) reduced.push_back(*one);
    });
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      for (const auto& kwargs :
           {config::DistributedDataParallelKwargs{.comm_hook = bf16},
            config::DistributedDataParallelKwargs{.comm_hook = bf16, .comm_wrapper = bf16},
            config::DistributedDataParallelKwargs{
                .comm_hook = power_sgd, .comm_wrapper = bf16, .comm_state_option = {.start_powerSGD_iter = 9}}}) {
        const auto net = std::make_shared<Scale>();
        net->to(dtype);
        const Wrapped wrapped(net, kwargs);
        for (int step = 0; step < 3; ++step) {
          reduced.clear();
          wrapped.backward(wrapped.model(at::ones({1}, dtype)).sum());
          ASSERT_EQ(reduced.size(), 1U) << "step " << step;
          EXPECT_EQ(reduced.front().parameters, std::vector<std::string>{"w"});
          EXPECT_EQ(reduced.front().divisor, 2);
          EXPECT_EQ(reduced.front().bytes, 2);
        }
      }
    }
  });
}

}  // namespace
}  // namespace lockstep::parallel
