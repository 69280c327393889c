// N ranks and one process come to the same parameters; without the averaging they do not.
#include <gtest/gtest.h>

#include <cstdio>
#include <mutex>

#include "lockstep/accelerator/training_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using test::deviation;
using test::Method;
using test::Recipe;
using test::relative_distance;
using test::train_alone;
using test::train_together;

std::vector<Recipe> recipes(at::ScalarType dtype) {
  std::vector<Recipe> all;
  for (const auto method : {Method::sgd, Method::adamw}) {
    for (const int accumulation : {1, 3})
      all.push_back({.dtype = dtype, .method = method, .accumulation = accumulation});
  }
  return all;
}

/// The worst that any rank saw, for the report.
class Worst {
 public:
  void see(double value) {
    const std::lock_guard lock(mutex_);
    worst_ = std::max(worst_, value);
  }
  [[nodiscard]] double value() const { return worst_; }

 private:
  std::mutex mutex_;
  double worst_ = 0;
};

TEST(NUM_001, InFloat64RanksEqualOneProcessTo1e10After50Steps) {
  Worst worst;
  for (const int world_size : {2, 3}) {
    for (const auto& recipe : recipes(torch::kDouble)) {
      const auto alone = train_alone(recipe, world_size).at(50);
      test::run_thread_ranks(world_size, [&] {
        const auto together = train_together(recipe).at(50);
        EXPECT_LE(deviation(together, alone, 1e-10, 1e-12), 1) << recipe.name() << " on " << world_size << " ranks";
        worst.see(deviation(together, alone, 1, 1e-2));
      });
    }
  }
  std::printf("float64, 50 steps: largest relative deviation %.2g\n", worst.value());
}

TEST(NUM_001, InFp32RanksEqualOneProcessWithinT2After10StepsAndCloselyAfter50) {
  Worst in_tolerances, distance;
  for (const int world_size : {2, 3}) {
    for (const auto& recipe : recipes(torch::kFloat)) {
      const auto alone = train_alone(recipe, world_size);
      const bool is_sgd = recipe.method == Method::sgd;
      test::run_thread_ranks(world_size, [&] {
        const auto together = train_together(recipe);
        const auto after_10 = deviation(together.at(10), alone.at(10), is_sgd ? 1e-4 : 1e-3, is_sgd ? 1e-5 : 1e-4);
        const auto after_50 = relative_distance(together.at(50), alone.at(50));
        EXPECT_LE(after_10, 1) << recipe.name() << " on " << world_size << " ranks";
        EXPECT_LE(after_50, 1e-4) << recipe.name() << " on " << world_size << " ranks";
        in_tolerances.see(after_10);
        distance.see(after_50);
      });
    }
  }
  std::printf("fp32: %.2g of the tolerance after 10 steps, distance %.2g after 50\n", in_tolerances.value(),
              distance.value());
}

TEST(NUM_001, TheComparisonFailsWithoutTheAveraging) {
  for (const auto dtype : {torch::kDouble, torch::kFloat}) {
    for (auto recipe : recipes(dtype)) {
      const auto alone = train_alone(recipe, 2);
      test::run_thread_ranks(2, [&] {
        const auto apart = train_together(recipe, /*averages=*/false);
        EXPECT_GT(deviation(apart.at(10), alone.at(10), 1e-3, 1e-4), 10) << recipe.name();
        EXPECT_GT(relative_distance(apart.at(50), alone.at(50)), 100 * 1e-4) << recipe.name();
      });
    }
  }
}

TEST(NUM_002, AWindowEqualsOneStepOnTheManifoldBatch) {
  for (const int world_size : {2, 3}) {
    const Recipe recipe{.method = Method::sgd, .accumulation = 3};
    const auto alone = train_alone(recipe, world_size, /*in_one=*/true).at(50);
    test::run_thread_ranks(world_size, [&] {
      EXPECT_LE(deviation(train_together(recipe).at(50), alone, 1e-10, 1e-12), 1) << world_size << " ranks";
    });
  }
}

TEST(NUM_002, HoldsForEveryWayOfReducing) {
  const Recipe recipe{.method = Method::adamw, .accumulation = 2, .steps = 20};
  const auto alone = train_alone(recipe, 3).at(20);
  for (const config::DistributedDataParallelKwargs& kwargs :
       {config::DistributedDataParallelKwargs{.find_unused_parameters = true},
        config::DistributedDataParallelKwargs{.gradient_as_bucket_view = true},
        config::DistributedDataParallelKwargs{.static_graph = true}}) {
    test::run_thread_ranks(
        3, [&] { EXPECT_LE(deviation(train_together(recipe, true, kwargs).at(20), alone, 1e-10, 1e-12), 1); });
  }
}

}  // namespace
}  // namespace lockstep
