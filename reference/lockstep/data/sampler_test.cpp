#include "lockstep/data/sampler.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/utils.h>

#include "lockstep/data/data_testing.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/data/seedable_sampler.h"
#include "lockstep/random/generator.h"

// Expected orders are those of PyTorch 2.11 in Python, from the same seeds.
namespace lockstep::data {
namespace {

using test::Batches;
using test::drain;
using test::Indices;

Batches passes(Sampler& sampler, int count) {
  Batches all;
  for (int i = 0; i < count; ++i) all.push_back(drain(sampler));
  return all;
}

TEST(SequentialSampler, CountsUpInEveryPass) {
  SequentialSampler sampler(3);
  EXPECT_EQ(passes(sampler, 2), (Batches{{0, 1, 2}, {0, 1, 2}}));
  EXPECT_EQ(sampler.next(), std::nullopt);
  EXPECT_EQ(sampler.length(), 3);
}

TEST(RandomSampler, DrawsPytorchsPermutationsFromAGenerator) {
  RandomSampler sampler(5, {.generator = random::make_generator(0)});
  EXPECT_EQ(passes(sampler, 3), (Batches{{4, 0, 1, 3, 2}, {2, 4, 1, 3, 0}, {1, 0, 4, 2, 3}}));
}

TEST(RandomSampler, CutsTheLastPermutationToNumSamples) {
  RandomSampler sampler(5, {.num_samples = 7, .generator = random::make_generator(0)});
  EXPECT_EQ(passes(sampler, 2), (Batches{{4, 0, 1, 3, 2, 3, 4}, {2, 4, 1, 3, 0, 1, 4}}));
  EXPECT_EQ(sampler.length(), 7);
}

TEST(RandomSampler, DrawsWithReplacement32AtATime) {
  RandomSampler sampler(5, {.replacement = true, .num_samples = 40, .generator = random::make_generator(0)});
  EXPECT_EQ(passes(sampler, 2), (Batches{{4, 4, 3, 0, 3, 4, 2, 3, 2, 3, 1, 1, 1, 4, 3, 1, 1, 3, 4, 3,
                                          1, 4, 1, 4, 4, 1, 4, 4, 4, 0, 1, 2, 3, 0, 0, 0, 2, 4, 1, 3},
                                         {3, 3, 1, 4, 1, 2, 3, 0, 2, 1, 0, 4, 3, 1, 1, 0, 3, 1, 1, 2,
                                          4, 1, 3, 4, 0, 0, 3, 2, 3, 2, 2, 0, 0, 0, 3, 1, 4, 1, 1, 0}}));
}

TEST(RandomSampler, WithoutAGeneratorTakesOneDrawOfTheDefaultOnePerPass) {
  torch::manual_seed(7);
  RandomSampler sampler(5);
  EXPECT_EQ(passes(sampler, 2), (Batches{{3, 4, 0, 1, 2}, {3, 2, 0, 4, 1}}));
  EXPECT_EQ(random::draw_seed(), 8087222774582268115);  // the default generator's third draw
  EXPECT_FALSE(sampler.generator()->defined());
}

TEST(RandomSampler, RefusesNoSamplesButPassesOverNoItems) {
  EXPECT_EQ(test::message_of<InvalidArgument>([] { RandomSampler(5, {.num_samples = 0}); }),
            "RandomSampler: expected num_samples to be positive, got 0. "
            "Leave num_samples unset to visit every item once.");
  RandomSampler empty(0);
  EXPECT_EQ(drain(empty), Indices{});
  EXPECT_EQ(RandomSampler(0, {.num_samples = 5}).length(), 0);
}

// DATA-097: the order of pass e is that of a fresh generator seeded with initial_seed + e.
TEST(DATA_097, TheSeedOfAPassIsTheInitialSeedPlusItsEpoch) {
  SeedableRandomSampler sampler(8, 42);
  EXPECT_EQ(passes(sampler, 2), (Batches{{6, 3, 0, 7, 2, 1, 4, 5}, {4, 5, 7, 1, 3, 2, 6, 0}}));
  EXPECT_EQ(sampler.epoch(), 2);
  EXPECT_TRUE(sampler.set_epoch(1));
  EXPECT_EQ(drain(sampler), (Indices{4, 5, 7, 1, 3, 2, 6, 0}));
  SeedableRandomSampler later(8, 43);
  EXPECT_EQ(drain(later), (Indices{4, 5, 7, 1, 3, 2, 6, 0}));
}

// DATA-098: the default seed, the user's generator, and what an epoch is.
TEST(DATA_098, TheInitialSeedIsTheDefaultGeneratorsUnlessGiven) {
  torch::manual_seed(42);
  random::draw_seed();  // what was drawn since does not matter
  SeedableRandomSampler sampler(8);
  EXPECT_EQ(sampler.initial_seed(), 42);
  EXPECT_EQ(drain(sampler), (Indices{6, 3, 0, 7, 2, 1, 4, 5}));
}

TEST(DATA_098, AGivenGeneratorIsReseededAtEachPass) {
  auto generator = random::make_generator(5);
  SeedableRandomSampler sampler(8, 42, {.generator = generator});
  sampler.reset();
  EXPECT_EQ(generator.current_seed(), 42u);
  EXPECT_EQ(drain(sampler), (Indices{6, 3, 0, 7, 2, 1, 4, 5}));
}

TEST(DATA_098, TheEpochGrowsWithAnExhaustedPassOnly) {
  SeedableRandomSampler sampler(8, 42);
  sampler.reset();
  for (int i = 0; i < 8; ++i) sampler.next();
  EXPECT_EQ(sampler.epoch(), 0);  // all indices handed out, the end not seen
  EXPECT_EQ(sampler.next(), std::nullopt);
  EXPECT_EQ(sampler.epoch(), 1);
  EXPECT_EQ(sampler.next(), std::nullopt);
  EXPECT_EQ(sampler.epoch(), 1);
}

// DATA-099: replacement and num_samples of a random sampler are kept.
TEST(DATA_099, KeepsReplacementAndNumSamples) {
  SeedableRandomSampler more(5, 42, {.num_samples = 8});
  const auto order = drain(more);
  EXPECT_EQ(order.size(), 8u);
  EXPECT_EQ(Indices(order.begin(), order.begin() + 5), [] {
    SeedableRandomSampler plain(5, 42);
    return drain(plain);
  }());
  SeedableRandomSampler with_replacement(5, 42, {.replacement = true, .num_samples = 7});
  EXPECT_EQ(drain(with_replacement).size(), 7u);
  EXPECT_EQ(with_replacement.length(), 7);
}

Batches all_ranks(std::int64_t size, int world_size, DistributedSamplerOptions options, std::int64_t epoch = 0) {
  Batches ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    DistributedSampler sampler(size, {.rank = rank, .size = world_size}, options);
    sampler.set_epoch(epoch);
    ranks.push_back(drain(sampler));
    EXPECT_EQ(sampler.length(), static_cast<std::int64_t>(ranks.back().size()));
  }
  return ranks;
}

TEST(DistributedSampler, DealsSingleItemsAndRepeatsTheHeadLikePytorch) {
  EXPECT_EQ(all_ranks(7, 3, {.shuffle = false}), (Batches{{0, 3, 6}, {1, 4, 0}, {2, 5, 1}}));
  EXPECT_EQ(all_ranks(2, 5, {.shuffle = false}), (Batches{{0}, {1}, {0}, {1}, {0}}));
}

TEST(DistributedSampler, ShufflesByItsSeedPlusTheEpoch) {
  EXPECT_EQ(all_ranks(7, 3, {.seed = 5}), (Batches{{1, 2, 3}, {0, 6, 1}, {4, 5, 0}}));
  EXPECT_EQ(all_ranks(7, 3, {.seed = 5}, 1), (Batches{{2, 3, 1}, {4, 0, 2}, {5, 6, 4}}));
}

TEST(DistributedSampler, DropsTheTailIfTold) {
  EXPECT_EQ(all_ranks(7, 3, {.drop_last = true}), (Batches{{4, 3}, {0, 2}, {5, 6}}));
  EXPECT_EQ(all_ranks(7, 3, {.drop_last = true}, 1), (Batches{{0, 3}, {6, 5}, {1, 2}}));
}

TEST(DistributedSampler, SaysThatItIsOneRanksPart) {
  EXPECT_TRUE(DistributedSampler(4, {.rank = 0, .size = 2}).is_rank_sharded());
  EXPECT_FALSE(SequentialSampler(4).is_rank_sharded());
  EXPECT_FALSE(DistributedSampler(4, {.rank = 0, .size = 1}).is_rank_sharded()) << "it hands out everything";
  EXPECT_THROW(DistributedSampler(4, {.rank = 2, .size = 2}), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::data
