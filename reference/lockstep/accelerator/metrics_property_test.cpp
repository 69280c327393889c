// gather_for_metrics returns exactly the dataset, in order, for any size, batch, world and kind of loader.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <numeric>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/data/data_testing.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using data::test::Indices;

// At least 200 cases; RC_PARAMS of the environment comes first.
const int kCasesAreSet = setenv("RC_PARAMS", "max_success=200", /*overwrite=*/0);

Indices metrics_of(Accelerator& accelerator, const data::DataLoader& loader) {
  Indices all;
  const auto prepared = accelerator.prepare(loader);
  for (const Value& batch : *prepared) {
    const auto step = data::test::to_indices(accelerator.gather_for_metrics(batch));
    all.insert(all.end(), step.begin(), step.end());
  }
  return all;
}

RC_GTEST_PROP(MetricsProperties, MetricsAreTheDatasetInOrder, ()) {
  ASSERT_EQ(kCasesAreSet, 0);
  const auto n = *rc::gen::inRange<std::int64_t>(0, 40).as("n");
  const auto w = *rc::gen::inRange(1, 5).as("w");
  const auto b = *rc::gen::inRange<std::int64_t>(1, 5).as("batch size per rank");
  const bool split = *rc::gen::arbitrary<bool>().as("split_batches");
  const bool dispatch = *rc::gen::arbitrary<bool>().as("dispatch_batches");
  const bool iterable = dispatch && *rc::gen::arbitrary<bool>().as("iterable");
  Indices right(static_cast<std::size_t>(n));
  std::iota(right.begin(), right.end(), 0);
  std::vector<Indices> metrics(static_cast<std::size_t>(w));
  test::run_thread_ranks(w, [&] {
    Accelerator accelerator({.split_batches = split, .dispatch_batches = dispatch});
    const data::DataLoaderOptions options{.batch_size = split ? b * w : b};
    metrics[static_cast<std::size_t>(accelerator.process_index())] =
        iterable ? metrics_of(accelerator, data::DataLoader(std::make_shared<data::test::Count>(n), options))
                 : metrics_of(accelerator, data::DataLoader(data::test::Ids{right.size()}, options));
  });
  for (const auto& mine : metrics) RC_ASSERT(mine == right);
}

}  // namespace
}  // namespace lockstep
