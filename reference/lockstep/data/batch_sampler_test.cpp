#include "lockstep/data/batch_sampler.h"

#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/data/data_testing.h"

namespace lockstep::data {
namespace {

using test::Batches;
using test::drain;
using test::Indices;
using test::ListBatches;

using BatchSamplerPtr = std::shared_ptr<BatchSampler>;

BatchSamplerPtr sequential(std::int64_t n, std::int64_t b, bool drop_last = false) {
  return std::make_shared<SamplerBatches>(std::make_shared<SequentialSampler>(n), b, drop_last);
}

// What every rank yields in one pass.
std::vector<Batches> shard_all(const BatchSamplerPtr& batches, int world_size, ShardOptions options = {}) {
  std::vector<Batches> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    BatchSamplerShard shard(batches, {.rank = rank, .size = world_size}, options);
    ranks.push_back(drain(shard));
  }
  return ranks;
}

std::vector<std::int64_t> lengths(const BatchSamplerPtr& batches, int world_size, ShardOptions options = {}) {
  std::vector<std::int64_t> lengths;
  for (int rank = 0; rank < world_size; ++rank) {
    lengths.push_back(BatchSamplerShard(batches, {.rank = rank, .size = world_size}, options).length());
  }
  return lengths;
}

constexpr ShardOptions kSplit{.split_batches = true};
constexpr ShardOptions kUneven{.even_batches = false};
constexpr ShardOptions kSplitUneven{.split_batches = true, .even_batches = false};
using Ranks = std::vector<Batches>;

TEST(SamplerBatches, CollectsIndicesAndKeepsOrDropsTheShortLastBatch) {
  EXPECT_EQ(drain(*sequential(7, 3)), (Batches{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(drain(*sequential(7, 3, true)), (Batches{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(sequential(7, 3)->length(), 3);
  EXPECT_EQ(sequential(7, 3, true)->length(), 2);
  EXPECT_EQ(drain(*sequential(0, 3)), Batches{});
}

TEST(SamplerBatches, StaysEmptyAfterTheEnd) {
  auto batches = sequential(2, 2);
  drain(*batches);
  EXPECT_EQ(batches->next(), std::nullopt);
}

TEST(SamplerBatches, RefusesABatchSizeThatIsNotPositive) {
  EXPECT_EQ(test::message_of<InvalidArgument>([] { sequential(4, 0); }),
            "SamplerBatches: expected batch_size to be positive, got 0. "
            "Give at least 1; a loader without batches has batch_size = std::nullopt.");
}

// DATA-020: rank r, step t yields s[(t*w + r)*b ... + b), with s_j = j mod n.
TEST(DATA_020, DealsWholeBatchesAndFillsTheLastRound) {
  EXPECT_EQ(
      shard_all(sequential(22, 4), 3),
      (Ranks{{{0, 1, 2, 3}, {12, 13, 14, 15}}, {{4, 5, 6, 7}, {16, 17, 18, 19}}, {{8, 9, 10, 11}, {20, 21, 0, 1}}}));
  EXPECT_EQ(lengths(sequential(22, 4), 3), (Indices{2, 2, 2}));
}

TEST(DATA_020, SaysHowManyIndicesOfABatchArePadding) {
  BatchSamplerShard shard(sequential(22, 4), {.rank = 2, .size = 3});
  shard.reset();
  EXPECT_EQ(shard.next()->num_padding, 0);
  EXPECT_EQ(shard.next()->num_padding, 2);
}

// DATA-021: a dataset smaller than a global batch is repeated in a cycle.
TEST(DATA_021, RepeatsASmallDatasetInACycle) {
  EXPECT_EQ(shard_all(sequential(2, 3), 3), (Ranks{{{0, 1, 0}}, {{1, 0, 1}}, {{0, 1, 0}}}));
  EXPECT_EQ(shard_all(sequential(1, 2), 4), (Ranks{{{0, 0}}, {{0, 0}}, {{0, 0}}, {{0, 0}}}));
}

// DATA-022: a short batch that is not the last rank's is filled first; the others go on in the cycle.
TEST(DATA_022, GoesOnInTheCycleFromRankToRank) {
  const auto ranks = shard_all(sequential(9, 2), 2);
  EXPECT_EQ(ranks[0].back(), (Indices{8, 0}));
  EXPECT_EQ(ranks[1].back(), (Indices{1, 2}));
}

// DATA-023: full batches that do not fill a round are followed by batches from the start.
TEST(DATA_023, GivesMissingRanksBatchesFromTheStart) {
  EXPECT_EQ(shard_all(sequential(20, 4), 3)[2].back(), (Indices{0, 1, 2, 3}));
}

// DATA-024: drop_last drops whole incomplete rounds, full batches included, whatever even_batches is.
TEST(DATA_024, DropsWholeIncompleteRounds) {
  for (const auto options : {ShardOptions{}, kUneven}) {
    EXPECT_EQ(shard_all(sequential(22, 4, true), 3, options),
              (Ranks{{{0, 1, 2, 3}}, {{4, 5, 6, 7}}, {{8, 9, 10, 11}}}));
    EXPECT_EQ(lengths(sequential(22, 4, true), 3, options), (Indices{1, 1, 1}));
  }
}

// DATA-025 and case A5: without even_batches nothing is repeated.
TEST(DATA_025, KeepsTheTailAsItIs) {
  EXPECT_EQ(shard_all(sequential(2, 3), 3, kUneven), (Ranks{{{0, 1}}, {}, {}}));
  EXPECT_EQ(lengths(sequential(2, 3), 3, kUneven), (Indices{1, 0, 0}));
}

TEST(DATA_025, CaseA5DoesNotWrapAround) {
  EXPECT_EQ(shard_all(sequential(10, 4), 2, kUneven), (Ranks{{{0, 1, 2, 3}, {8, 9}}, {{4, 5, 6, 7}}}));
  EXPECT_EQ(shard_all(sequential(10, 4), 3, kUneven), (Ranks{{{0, 1, 2, 3}}, {{4, 5, 6, 7}}, {{8, 9}}}));
}

// DATA-026: split, every full batch is cut into w parts.
TEST(DATA_026, CutsFullBatches) {
  EXPECT_EQ(shard_all(sequential(8, 4), 2, kSplit), (Ranks{{{0, 1}, {4, 5}}, {{2, 3}, {6, 7}}}));
}

// DATA-027: split and even, the short batch is filled from the first batch before it is cut.
TEST(DATA_027, FillsTheShortBatchBeforeCutting) {
  const auto ranks = shard_all(sequential(22, 4), 2, kSplit);
  EXPECT_EQ(ranks[0].back(), (Indices{20, 21}));
  EXPECT_EQ(ranks[1].back(), (Indices{0, 1}));
  EXPECT_EQ(shard_all(sequential(2, 3), 3, kSplit), (Ranks{{{0}}, {{1}}, {{0}}}));
}

// DATA-028: split and not even, ranks get what the short batch has for them, or nothing.
TEST(DATA_028, CutsTheShortBatchAsItIs) {
  const auto ranks = shard_all(sequential(22, 6), 3, kSplitUneven);
  EXPECT_EQ(ranks[0].back(), (Indices{18, 19}));
  EXPECT_EQ(ranks[1].back(), (Indices{20, 21}));
  EXPECT_EQ(ranks[2].back(), (Indices{16, 17}));
}

// DATA-029: split with drop_last cuts full batches only.
TEST(DATA_029, DropsTheShortBatch) {
  for (const auto options : {kSplit, kSplitUneven}) {
    EXPECT_EQ(shard_all(sequential(7, 4, true), 2, options), (Ranks{{{0, 1}}, {{2, 3}}}));
  }
}

// DATA-030: split, the length is the number of raw batches.
TEST(DATA_030, HasAsManyStepsAsThereAreBatches) {
  EXPECT_EQ(lengths(sequential(22, 4), 2, kSplit), (Indices{6, 6}));
  EXPECT_EQ(lengths(sequential(22, 4, true), 2, kSplit), (Indices{5, 5}));
}

// DATA-031, accepted outcome: the exact length per rank.
TEST(DATA_031, CountsExactlyWhatARankYields) {
  EXPECT_EQ(lengths(sequential(1, 2), 2, kSplitUneven), (Indices{1, 0}));
  EXPECT_EQ(lengths(sequential(22, 6), 3, kSplitUneven), (Indices{4, 4, 3}));
  EXPECT_EQ(lengths(std::make_shared<ListBatches>(Batches{{0}}, 2), 2, kSplitUneven), (Indices{1, 1}));  // not known
}

// DATA-032: split without a batch size, or one that w does not divide.
TEST(DATA_032, RefusesABatchSizeThatCannotBeSplit) {
  EXPECT_EQ(test::message_of<InvalidArgument>([] { shard_all(sequential(6, 3), 2, kSplit); }),
            "BatchSamplerShard(split_batches=true): expected batch_size to be a multiple of world size 2, "
            "got batch_size 3. Round batch_size up to that multiple, or pass split_batches=false.");
  const auto dynamic = std::make_shared<ListBatches>(Batches{{0}});
  EXPECT_EQ(test::message_of<InvalidArgument>([&] { shard_all(dynamic, 2, kSplit); }),
            "BatchSamplerShard(split_batches=true): expected batch_size to be a multiple of world size 2, "
            "got no batch size. Give the loader or the batch sampler one, or pass split_batches=false.");
}

// DATA-033: no data, no batches, no error.
TEST(DATA_033, PassesOverNothing) {
  for (const auto options : {ShardOptions{}, kUneven, kSplit, kSplitUneven}) {
    for (const bool drop_last : {false, true}) {
      EXPECT_EQ(shard_all(sequential(0, 4, drop_last), 2, options), (Ranks{{}, {}}));
      EXPECT_EQ(lengths(sequential(0, 4, drop_last), 2, options), (Indices{0, 0}));
    }
  }
}

// DATA-034: on one rank the class completes the tail, unlike a prepared loader.
TEST(DATA_034, FillsTheTailOnOneRank) {
  EXPECT_EQ(shard_all(sequential(5, 4), 1), (Ranks{{{0, 1, 2, 3}, {4, 0, 1, 2}}}));
}

const auto kDynamic = std::make_shared<ListBatches>(Batches{{0, 1, 2}, {3, 4}, {5, 6, 7, 8}, {9, 10}, {11}});

// DATA-035: batches of varying size are dealt whole, and whole ones fill the last round.
TEST(DATA_035, DealsBatchesOfVaryingSizeWhole) {
  EXPECT_EQ(shard_all(kDynamic, 2), (Ranks{{{0, 1, 2}, {5, 6, 7, 8}, {11}}, {{3, 4}, {9, 10}, {0, 1, 2}}}));
  EXPECT_EQ(shard_all(std::make_shared<ListBatches>(Batches{{0, 1}}), 2), (Ranks{{{0, 1}}, {{0, 1}}}));
}

TEST(DATA_035, CountsARepeatedBatchAsPadding) {
  BatchSamplerShard shard(kDynamic, {.rank = 1, .size = 2});
  Indices padding;
  shard.reset();
  while (const auto batch = shard.next()) padding.push_back(batch->num_padding);
  EXPECT_EQ(padding, (Indices{0, 0, 3}));
}

// DATA-036: the same without completion, and with drop_last.
TEST(DATA_036, KeepsOrDropsAnIncompleteRoundOfThem) {
  EXPECT_EQ(shard_all(kDynamic, 2, kUneven), (Ranks{{{0, 1, 2}, {5, 6, 7, 8}, {11}}, {{3, 4}, {9, 10}}}));
  EXPECT_EQ(lengths(kDynamic, 2, kUneven), (Indices{3, 2}));
  const auto dropping = std::make_shared<ListBatches>(kDynamic->batches(), std::nullopt, true);
  EXPECT_EQ(shard_all(dropping, 2), (Ranks{{{0, 1, 2}, {5, 6, 7, 8}}, {{3, 4}, {9, 10}}}));
}

// DATA-037, accepted outcome: an error that names the odd batch, before anything of its round is handed out.
TEST(DATA_037, NamesTheBatchThatIsNotOfTheBatchSize) {
  const auto odd = std::make_shared<ListBatches>(Batches{{0, 1, 2}, {3, 4}, {5, 6, 7, 8}, {9, 10}, {11}}, 3);
  const std::string expected =
      "BatchSamplerShard: expected batches of batch_size 3, of which only the last may be shorter, got batch 1 with 2 "
      "indices. Leave batch_size() unset for batches of varying size: they are then dealt whole.";
  for (int world_size = 1; world_size <= 4; ++world_size) {
    for (const auto options : {ShardOptions{}, kUneven}) {
      EXPECT_EQ(test::message_of<InvalidArgument>([&] { shard_all(odd, world_size, options); }), expected);
    }
  }
  const auto too_long = std::make_shared<ListBatches>(Batches{{0, 1, 2}, {3, 4, 5, 6}}, 3);
  EXPECT_THROW(shard_all(too_long, 2), InvalidArgument);
  EXPECT_THROW(shard_all(too_long, 2, {.split_batches = false, .even_batches = false}), InvalidArgument);
}

TEST(DATA_037, AllowsAShortBatchAtTheEnd) {
  EXPECT_EQ(shard_all(std::make_shared<ListBatches>(Batches{{0, 1, 2}, {3}}, 3), 2), (Ranks{{{0, 1, 2}}, {{3, 0, 1}}}));
}

// DATA-038: total_length is that of the wrapped batch sampler.
TEST(DATA_038, TotalLengthIsThatOfAllRanks) {
  EXPECT_EQ(BatchSamplerShard(sequential(22, 4), {.rank = 1, .size = 3}).total_length(), 6);
}

// DATA-039, accepted outcome: the caller's batches stay as they are, pass after pass.
TEST(DATA_039, LeavesTheCallersBatchesAlone) {
  const auto batches = std::make_shared<ListBatches>(Batches{{0, 1, 2}, {3}}, 3);
  BatchSamplerShard shard(batches, {.rank = 1, .size = 2});
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(drain(shard), (Batches{{3, 0, 1}}));
  EXPECT_EQ(batches->batches(), (Batches{{0, 1, 2}, {3}}));
}

TEST(BatchSamplerShard, RefusesARankOutsideTheWorldAndABatchSizeOfNone) {
  EXPECT_THROW(BatchSamplerShard(sequential(4, 2), {.rank = 2, .size = 2}), InvalidArgument);
  EXPECT_THROW(BatchSamplerShard(std::make_shared<ListBatches>(Batches{{0}}, 0), {}), InvalidArgument);
  EXPECT_THROW(BatchSamplerShard(nullptr, {}), InvalidArgument);
}

TEST(BatchSamplerShard, CanBeMadeOverAnotherSampler) {
  const BatchSamplerShard shard(sequential(4, 2), {.rank = 1, .size = 2});
  auto other = shard.with_sampler(std::make_shared<test::ListSampler>(Indices{3, 2, 1, 0}));
  EXPECT_EQ(drain(*other), (Batches{{1, 0}}));
  EXPECT_EQ(drain(*shard.wrapped()), (Batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(BatchSamplerShard(kDynamic, {}).with_sampler(nullptr), nullptr);
}

}  // namespace
}  // namespace lockstep::data
