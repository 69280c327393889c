#include "lockstep/parallel/ddp/bucket_plan.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "lockstep/parallel/ddp/ddp_test_support.h"
#include "run_ranks.h"

namespace lockstep::parallel {
namespace {

using Buckets = std::vector<std::vector<std::size_t>>;
using Names = std::vector<std::vector<std::string>>;
constexpr std::int64_t kMiBOfFloats = (1 << 20) / sizeof(float);

std::vector<at::Tensor> floats(const std::vector<std::int64_t>& sizes) {
  std::vector<at::Tensor> tensors;
  for (const auto size : sizes) tensors.push_back(at::empty({size}));
  return tensors;
}

TEST(DDP_004, ABucketClosesOnceItsBytesReachItsLimit) {
  const auto parameters = floats({100, 50, 60, 200, 10, 300});
  const auto buckets = first_buckets(parameters, {.first_bytes = 400, .other_bytes = 1000}, /*are_rebuilt=*/false);
  EXPECT_EQ(buckets, (Buckets{{4, 5}, {1, 2, 3}, {0}}));  // cut in registration order, then reversed
  // One byte more, and the first one takes the second parameter too.
  EXPECT_EQ(first_buckets(parameters, {.first_bytes = 401, .other_bytes = 1000}, false),
            (Buckets{{4, 5}, {2, 3}, {0, 1}}));
}

TEST(DDP_004, BucketsThatAreMadeAnewStartAsOnePerDtype) {
  auto parameters = floats({100, 50, 60, 200, 10, 300});
  EXPECT_EQ(first_buckets(parameters, bucket_limits(25), /*are_rebuilt=*/true), (Buckets{{0, 1, 2, 3, 4, 5}}));
  parameters[1] = parameters[1].to(at::kDouble);
  EXPECT_EQ(first_buckets(parameters, bucket_limits(25), true), (Buckets{{1}, {0, 2, 3, 4, 5}}));
}

TEST(DDP_004, TheCapIs25MiBAnd1ForTheFirstUnlessItIsGiven) {
  constexpr std::int64_t mib = 1 << 20;
  EXPECT_EQ(bucket_limits(25), (BucketLimits{.first_bytes = mib, .other_bytes = 25 * mib}));
  EXPECT_EQ(bucket_limits(7), (BucketLimits{.first_bytes = 7 * mib, .other_bytes = 7 * mib}));
}

// The names in a model's buckets before its first step and in the two after it.
std::vector<Names> buckets_by_iteration(const std::shared_ptr<test::Rows>& net,
                                        const config::DistributedDataParallelKwargs& kwargs) {
  const test::Wrapped wrapped(net, kwargs);
  std::vector<Names> seen{wrapped.engine->buckets()};
  for (int step = 0; step < 2; ++step) {
    wrapped.backward(wrapped.model(at::full({1}, 0.1)).sum());
    static_cast<void>(wrapped.model(at::ones({1})));  // a forward is when buckets are made anew
    seen.push_back(wrapped.engine->buckets());
  }
  return seen;
}

TEST(DDP_004, FollowTheOrderInWhichGradientsBecameReadyFromTheSecondIterationOn) {
  lockstep::test::run_thread_ranks(2, [] {
    const std::vector<std::int64_t> sizes{kMiBOfFloats, kMiBOfFloats / 2, kMiBOfFloats / 2, 10};
    // Forward uses p2, p0, p3, p1: backward meets them the other way round.
    const auto seen = buckets_by_iteration(std::make_shared<test::Rows>(sizes, std::vector<std::size_t>{2, 0, 3, 1}),
                                           {.bucket_cap_mb = 1});
    EXPECT_EQ(seen[0], (Names{{"p0", "p1", "p2", "p3"}}));
    const Names ready_order{{"p1", "p3", "p0"}, {"p2"}};
    EXPECT_EQ(seen[1], ready_order);
    EXPECT_EQ(seen[2], ready_order);
    const auto fixed = buckets_by_iteration(std::make_shared<test::Rows>(sizes, std::vector<std::size_t>{2, 0, 3, 1}),
                                            {.bucket_cap_mb = 1, .find_unused_parameters = true, .static_graph = true});
    EXPECT_EQ(fixed[0], (Names{{"p0", "p1", "p2", "p3"}})) << "a static graph is never searched";
    EXPECT_EQ(fixed[2], ready_order) << "one iteration later: a static graph's first reduces at its end, in no order";
  });
}

TEST(DDP_004, WithTheSearchOnRegistrationOrderIsReversedAndStays) {
  lockstep::test::run_thread_ranks(2, [] {
    const std::vector<std::int64_t> sizes(3, kMiBOfFloats);
    const std::vector<std::size_t> order{2, 0, 1};
    const auto by_default =
        buckets_by_iteration(std::make_shared<test::Rows>(sizes, order), {.find_unused_parameters = true});
    for (const auto& buckets : by_default) EXPECT_EQ(buckets, (Names{{"p1", "p2"}, {"p0"}}));
    const auto with_cap = buckets_by_iteration(std::make_shared<test::Rows>(sizes, order),
                                               {.bucket_cap_mb = 2, .find_unused_parameters = true});
    for (const auto& buckets : with_cap)
      EXPECT_EQ(buckets, (Names{{"p2"}, {"p0", "p1"}})) << "the cap replaces the 1 MiB";
  });
}

TEST(DDP_004, BucketsDoNotChangeValues) {
  lockstep::test::run_thread_ranks(3, [] {
    const auto gradients_with = [](const config::DistributedDataParallelKwargs& kwargs) {
      const test::Wrapped wrapped(
          std::make_shared<test::Rows>(std::vector<std::int64_t>{kMiBOfFloats, 7, kMiBOfFloats, 3}), kwargs);
      std::vector<at::Tensor> last;
      for (int step = 0; step < 3; ++step) {
        wrapped.forget_gradients();
        wrapped.backward(wrapped.model(at::full({1}, 0.1 * (test::world().rank() + 1))).sum());
        last = test::gradients_of(*wrapped.net);
      }
      return last;
    };
    const auto one = gradients_with({});
    for (const auto& kwargs : {config::DistributedDataParallelKwargs{.bucket_cap_mb = 1},
                               config::DistributedDataParallelKwargs{.find_unused_parameters = true},
                               config::DistributedDataParallelKwargs{.static_graph = true}}) {
      const auto other = gradients_with(kwargs);
      for (std::size_t i = 0; i < one.size(); ++i)
        EXPECT_TRUE(at::allclose(one[i], other[i], 1.3e-6, 1e-5)) << "p" << i;
    }
  });
}

}  // namespace
}  // namespace lockstep::parallel
