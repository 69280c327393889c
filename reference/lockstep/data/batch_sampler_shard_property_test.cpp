#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/data/data_testing.h"

namespace lockstep::data {
namespace {

using test::Indices;

// At least 200 cases each; RC_PARAMS of the environment, such as a seed to reproduce, comes first.
const int kCasesAreSet = setenv("RC_PARAMS", "max_success=300", /*overwrite=*/0);

/// A sampler's order, dealt in one way. Shrinks towards one rank, one sample, whole batches.
struct ShardCase {
  Indices order;  // a permutation of 0 ... n-1
  int world_size = 1;
  std::int64_t share_size = 1;  // per rank and step
  bool split = false;

  [[nodiscard]] std::int64_t total() const { return share_size * world_size; }
  [[nodiscard]] std::int64_t batch_size() const { return split ? total() : share_size; }
  [[nodiscard]] std::int64_t num_items() const { return static_cast<std::int64_t>(order.size()); }
};

ShardCase any_shard_case() {
  ShardCase c;
  c.order.resize(static_cast<std::size_t>(*rc::gen::inRange(0, 60).as("n")));
  c.world_size = *rc::gen::inRange(1, 8).as("w");
  c.share_size = *rc::gen::inRange(1, 8).as("batch size per rank");
  c.split = *rc::gen::arbitrary<bool>().as("split_batches");
  std::iota(c.order.begin(), c.order.end(), 0);
  std::rotate(c.order.begin(), c.order.begin() + static_cast<std::ptrdiff_t>(c.order.size() / 3), c.order.end());
  return c;
}

using Ranks = std::vector<std::vector<Batch>>;

Ranks deal(const ShardCase& c, bool even_batches, bool drop_last) {
  Ranks ranks;
  for (int rank = 0; rank < c.world_size; ++rank) {
    auto order = std::make_shared<test::ListSampler>(c.order);
    auto batches = std::make_shared<SamplerBatches>(std::move(order), c.batch_size(), drop_last);
    BatchSamplerShard shard(batches, {.rank = rank, .size = c.world_size},
                            {.split_batches = c.split, .even_batches = even_batches});
    auto& mine = ranks.emplace_back();
    shard.reset();
    while (auto batch = shard.next()) mine.push_back(std::move(*batch));
    RC_ASSERT(shard.length() == static_cast<std::int64_t>(mine.size()));
  }
  return ranks;
}

/// The batches of ranks 0 ... w-1 one after the other, step by step.
Indices step_by_step(const Ranks& ranks) {
  Indices all;
  for (std::size_t step = 0; step < ranks.front().size(); ++step) {
    for (const auto& mine : ranks) {
      if (step < mine.size()) all.insert(all.end(), mine[step].indices.begin(), mine[step].indices.end());
    }
  }
  return all;
}

std::int64_t num_padding(const Ranks& ranks) {
  std::int64_t sum = 0;
  for (const auto& mine : ranks) {
    for (const auto& batch : mine) sum += batch.num_padding;
  }
  return sum;
}

// DATA-040: with even_batches, every rank yields equally many batches, all of them full, and every index occurs.
RC_GTEST_PROP(DATA_040, EveryRankYieldsEquallyManyFullBatchesAndEveryIndexOccurs, ()) {
  const auto c = any_shard_case();
  const auto ranks = deal(c, /*even_batches=*/true, /*drop_last=*/false);
  for (const auto& mine : ranks) {
    RC_ASSERT(mine.size() == ranks.front().size());
    for (const auto& batch : mine) RC_ASSERT(batch.size() == c.share_size);
  }
  const auto seen = step_by_step(ranks);
  RC_ASSERT(std::set<std::int64_t>(seen.begin(), seen.end()).size() == c.order.size());
}

// DATA-041: step by step, the ranks give the sampler's order and then its head again, within the last step.
RC_GTEST_PROP(DATA_041, TheRanksTogetherGiveTheOrderAndThenItsHeadAgain, ()) {
  const auto c = any_shard_case();
  const auto ranks = deal(c, /*even_batches=*/true, /*drop_last=*/false);
  const auto seen = step_by_step(ranks);
  for (std::size_t j = 0; j < seen.size(); ++j) RC_ASSERT(seen[j] == c.order[j % c.order.size()]);
  const auto repeated = static_cast<std::int64_t>(seen.size()) - c.num_items();
  RC_ASSERT(repeated >= 0);
  RC_ASSERT(repeated < c.total());
  RC_ASSERT(num_padding(ranks) == repeated);
}

// DATA-042: without even_batches, the ranks partition the indices.
RC_GTEST_PROP(DATA_042, TheRanksPartitionTheIndices, ()) {
  const auto c = any_shard_case();
  const auto ranks = deal(c, /*even_batches=*/false, /*drop_last=*/false);
  RC_ASSERT(step_by_step(ranks) == c.order);
  RC_ASSERT(num_padding(ranks) == 0);
}

// DATA-043: with drop_last, the first b*w*floor(n/(b*w)) indices are kept (split: b*floor(n/b)), each once.
RC_GTEST_PROP(DATA_043, DropLastKeepsExactlyTheWholeRounds, ()) {
  const auto c = any_shard_case();
  const auto even_batches = *rc::gen::arbitrary<bool>().as("even_batches, which is ignored");
  const auto kept = c.num_items() / c.total() * c.total();
  RC_ASSERT(step_by_step(deal(c, even_batches, /*drop_last=*/true)) ==
            Indices(c.order.begin(), c.order.begin() + static_cast<std::ptrdiff_t>(kept)));
}

TEST(ShardProperties, RunAtLeast200CasesUnlessToldOtherwise) {
  EXPECT_EQ(kCasesAreSet, 0);
  int cases = 0;
  rc::detail::checkGTest([&cases] {
    ++cases;
    any_shard_case();
  });
  EXPECT_GE(cases, 200);
}

}  // namespace
}  // namespace lockstep::data
