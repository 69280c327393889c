#include "lockstep/data/prepare_data_loader.h"

#include <torch/utils.h>

#include <set>

#include "lockstep/data/data_testing.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/data/seedable_sampler.h"
#include "lockstep/data/thread_counter.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

using state::GradientState;
using test::Batches;
using test::drain_loader;
using test::Ids;
using test::Indices;
using test::ListBatches;
using test::message_of;
using Ranks = std::vector<Batches>;

// One pass of every rank over loaders that `make` builds, each rank with samplers of its own.
Ranks pass_of_ranks(int world_size, const std::function<DataLoader(World)>& make, const PrepareOptions& options = {}) {
  Ranks ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    GradientState state;
    const World world{.rank = rank, .size = world_size};
    ranks.push_back(drain_loader(*prepare_data_loader(make(world), world, state, options)));
  }
  return ranks;
}

const DataLoaderShardOptions& shard_options(const std::shared_ptr<PreparedDataLoader>& prepared) {
  return dynamic_cast<const DataLoaderShard&>(*prepared).options();
}

std::function<DataLoader(World)> ids(std::size_t n, DataLoaderOptions options) {
  return [=](World) { return DataLoader(Ids{n}, options); };
}

std::multiset<std::int64_t> seen_by(const Ranks& ranks) {
  std::multiset<std::int64_t> seen;
  for (const auto& batches : ranks) {
    for (const auto& batch : batches) seen.insert(batch.begin(), batch.end());
  }
  return seen;
}

// DATA-006: on one rank the batch sampler is the loader's own; on several it is wrapped.
TEST(DATA_006, WrapsTheBatchSamplerOnSeveralRanksOnly) {
  GradientState state;
  const DataLoader loader(Ids{5}, {.batch_size = 2});
  EXPECT_EQ(prepare_data_loader(loader, {}, state)->batch_sampler(), loader.batch_sampler());
  const auto two = prepare_data_loader(loader, {.rank = 0, .size = 2}, state);
  EXPECT_EQ(two->batch_sampler()->wrapped(), loader.batch_sampler());
}

// DATA-007: on one rank the tail is not completed.
TEST(DATA_007, LeavesTheTailAloneOnOneRank) {
  EXPECT_EQ(pass_of_ranks(1, ids(5, {.batch_size = 4}))[0], (Batches{{0, 1, 2, 3}, {4}}));
}

// DATA-008 and case A7: a sampler that yields whole batches is sharded where it stands.
DataLoader over_batches_of_3(std::size_t n) {
  auto batches = std::make_shared<SamplerBatches>(std::make_shared<SequentialSampler>(n), 3);
  return DataLoader(Ids{n}, {.batch_size = std::nullopt, .sampler = batches});
}

TEST(DATA_008, ShardsASamplerOfWholeBatches) {
  EXPECT_EQ(pass_of_ranks(2, [](World) { return over_batches_of_3(10); }),
            (Ranks{{{0, 1, 2}, {6, 7, 8}}, {{3, 4, 5}, {9, 0, 1}}}));
  GradientState state;
  const auto loader = prepare_data_loader(over_batches_of_3(10), {.rank = 1, .size = 2}, state);
  EXPECT_EQ(loader->total_batch_size(), 6);
  for (auto& batch : *loader) EXPECT_EQ((static_cast<void>(batch), loader->remainder()), 4);
}

TEST(DATA_008, CaseA7DealsItsBatchesAlternately) {
  EXPECT_EQ(pass_of_ranks(2, [](World) { return over_batches_of_3(12); }),
            (Ranks{{{0, 1, 2}, {6, 7, 8}}, {{3, 4, 5}, {9, 10, 11}}}));
}

std::string refusal(const DataLoader& loader, int world_size, const PrepareOptions& options) {
  GradientState state;
  const World world{.rank = 0, .size = world_size};
  return message_of<InvalidArgument>([&] { prepare_data_loader(loader, world, state, options); });
}

// DATA-009: split_batches and a batch size that w does not divide, named with w.
TEST(DATA_009, RefusesABatchSizeThatTheRanksCannotSplit) {
  EXPECT_EQ(refusal(DataLoader(Ids{6}, {.batch_size = 3}), 2, {.split_batches = true}),
            "prepare_data_loader(split_batches=true): expected batch_size to be a multiple of world size 2, "
            "got batch_size 3. Round batch_size up to that multiple, or pass split_batches=false.");
}

// DATA-010: split_batches without any batch size; on one rank too.
TEST(DATA_010, RefusesToSplitBatchesWithoutASize) {
  const DataLoader dynamic(Ids{3}, {.batch_sampler = std::make_shared<ListBatches>(Batches{{0}, {1, 2}})});
  for (const int world_size : {1, 2}) {
    EXPECT_EQ(refusal(dynamic, world_size, {.split_batches = true}),
              c10::str("prepare_data_loader(split_batches=true): expected batch_size to be a multiple of world size ",
                       world_size,
                       ", got no batch size. Give the loader or the batch sampler one, or pass split_batches=false."));
  }
  GradientState state;
  const DataLoader sized(Ids{2}, {.batch_sampler = std::make_shared<ListBatches>(Batches{{0, 1}}, 2)});
  EXPECT_NO_THROW(prepare_data_loader(sized, {.rank = 0, .size = 2}, state, {.split_batches = true}));
}

// DATA-011: nor can a batch of one be split.
TEST(DATA_011, RefusesToSplitABatchOfOne) {
  EXPECT_NE(refusal(DataLoader(Ids{6}), 2, {.split_batches = true}).find("got batch_size 1"), std::string::npos);
}

// DATA-012: no batches and several ranks, refused at preparation.
TEST(DATA_012, RefusesALoaderWithoutBatchesOnSeveralRanks) {
  GradientState state;
  const DataLoader loader(Ids{4}, {.batch_size = std::nullopt});
  EXPECT_EQ(message_of<TypeError>([&] { prepare_data_loader(loader, {.rank = 0, .size = 2}, state); }),
            "prepare_data_loader: expected batches to share among 2 ranks, "
            "got a loader without batches (batch_size unset). "
            "Give the loader a batch_size, a batch_sampler, or a sampler that yields whole batches.");
  EXPECT_EQ(drain_loader(*prepare_data_loader(loader, {}, state)).size(), 4u);
}

// DATA-013: the loader's other options are kept.
TEST(DATA_013, KeepsTheLoadersOtherOptions) {
  GradientState state;
  const auto generator = random::make_generator(1);
  const auto collate = [](const std::vector<Value>& items) { return Value(items.size()); };
  const auto nothing = [](const WorkerInfo&) {};
  const DataLoader loader(Ids{8}, {.batch_size = 2,
                                   .num_workers = 2,
                                   .prefetch_factor = 3,
                                   .generator = generator,
                                   .collate = collate,
                                   .timeout = std::chrono::seconds(5),
                                   .worker_init = nothing});
  const auto prepared = prepare_data_loader(loader, {.rank = 0, .size = 2}, state);
  const auto& kept = prepared->loader().options();
  EXPECT_EQ(kept.num_workers, 2);
  EXPECT_EQ(kept.prefetch_factor, 3);
  EXPECT_EQ(kept.generator, generator);
  EXPECT_EQ(kept.timeout, std::chrono::seconds(5));
  EXPECT_TRUE(kept.worker_init);
  for (auto& batch : *prepared) EXPECT_EQ(batch.integer(), 2);
}

// DATA-018: device and non_blocking go to the copy; off unless a device is given.
TEST(DATA_018, PassesDeviceAndNonBlockingOn) {
  GradientState state;
  const auto prepared = prepare_data_loader(DataLoader(Ids{4}), {}, state, {.device = at::kMeta, .non_blocking = true});
  EXPECT_TRUE(shard_options(prepared).non_blocking);
  for (auto& batch : *prepared) EXPECT_TRUE(batch.tensor().is_meta());
  const auto in_place = prepare_data_loader(DataLoader(Ids{4}), {}, state);
  for (auto& batch : *in_place) EXPECT_TRUE(batch.tensor().is_cpu());
}

// DATA-097, DATA-100: use_seedable_sampler replaces a random sampler, and nothing else.
TEST(DATA_100, ReplacesARandomSamplerOnly) {
  GradientState state;
  const PrepareOptions seedable{.use_seedable_sampler = true, .data_seed = 42};
  const DataLoader shuffled(Ids{8}, {.batch_size = 8, .shuffle = true});
  for (const int world_size : {1, 2}) {
    const auto prepared = prepare_data_loader(shuffled, {.rank = 0, .size = world_size}, state, seedable);
    EXPECT_EQ(drain_loader(*prepared), (Batches{{6, 3, 0, 7, 2, 1, 4, 5}}));
    EXPECT_EQ(drain_loader(*prepared), (Batches{{4, 5, 7, 1, 3, 2, 6, 0}}));
  }
  EXPECT_FALSE(std::dynamic_pointer_cast<SeedableRandomSampler>(shuffled.sampler()));  // the original is as it was
  const DataLoader sequential(Ids{4}, {.batch_size = 4});
  EXPECT_EQ(prepare_data_loader(sequential, {}, state, seedable)->sampler(), sequential.sampler());
  const DataLoader items(Ids{8}, {.batch_size = std::nullopt, .shuffle = true});
  EXPECT_EQ(drain_loader(*prepare_data_loader(items, {}, state, seedable))[0], (Indices{6}));
}

TEST(DATA_100, KeepsASeedableSamplerWithItsSeed) {
  GradientState state;
  const DataLoader own(Ids{8}, {.batch_size = 8, .sampler = std::make_shared<SeedableRandomSampler>(8, 42)});
  EXPECT_EQ(drain_loader(*prepare_data_loader(own, {}, state, {.use_seedable_sampler = true, .data_seed = 1}))[0],
            (Indices{6, 3, 0, 7, 2, 1, 4, 5}));
}

// DATA-099: replacement and num_samples survive the replacement.
TEST(DATA_099, TheSeedableSamplerVisitsAsManySamples) {
  GradientState state;
  auto sampler = std::make_shared<RandomSampler>(5, RandomSamplerOptions{.replacement = true, .num_samples = 7});
  const DataLoader loader(Ids{5}, {.batch_size = 7, .sampler = sampler});
  const auto prepared = prepare_data_loader(loader, {}, state, {.use_seedable_sampler = true, .data_seed = 42});
  SeedableRandomSampler expected(5, 42, {.replacement = true, .num_samples = 7});
  EXPECT_EQ(drain_loader(*prepared)[0], test::drain(expected));
}

// Each rank as it would be alone: with a default generator of its own seed, which a hook makes that of rank 0.
struct SeededRanks {
  std::vector<std::int64_t> seeds;
  PrepareOptions options;
  std::size_t num_items;
  std::int64_t batch_size = 1;

  [[nodiscard]] Ranks pass() const {
    at::Tensor shared;  // the generator's state on rank 0, as a broadcast would carry it
    std::optional<std::int64_t> shared_seed;
    auto hooked = options;
    hooked.hooks.synchronize_generator = [&](at::Generator& generator) {
      if (!shared.defined()) shared = generator.get_state();
      generator.set_state(shared);
    };
    hooked.synchronize_seed = [&](std::int64_t own) { return *(shared_seed = shared_seed.value_or(own)); };
    Ranks ranks;
    for (std::size_t rank = 0; rank < seeds.size(); ++rank) {
      torch::manual_seed(static_cast<std::uint64_t>(seeds[rank]));
      GradientState state;
      const World world{.rank = static_cast<int>(rank), .size = static_cast<int>(seeds.size())};
      const DataLoader loader(Ids{num_items}, {.batch_size = batch_size, .shuffle = true});
      ranks.push_back(drain_loader(*prepare_data_loader(loader, world, state, hooked)));
    }
    return ranks;
  }
};

// DATA-101, accepted outcome: the ranks agree on a seed.
TEST(DATA_101, RanksWithDifferentSeedsAgreeOnOne) {
  const SeededRanks ranks{.seeds = {50, 51}, .options = {.use_seedable_sampler = true}, .num_items = 6};
  const auto seen = ranks.pass();
  EXPECT_EQ(seen[0], (Batches{{4}, {5}, {2}}));  // seed 50
  EXPECT_EQ(seen_by(seen), (std::multiset<std::int64_t>{0, 1, 2, 3, 4, 5}));
}

// RNG-006: an empty generator slot is filled with one draw of the default generator, and synchronised.
TEST(RNG_006, RanksWithDifferentSeedsShareOnePermutation) {
  const SeededRanks ranks{.seeds = {50, 51}, .num_items = 6};
  EXPECT_EQ(ranks.pass(), (Ranks{{{3}, {0}, {5}}, {{4}, {1}, {2}}}));
}

TEST(DATA_016, TensorParallelRanksWithDifferentSeedsReadTheSame) {
  const SeededRanks ranks{.seeds = {50, 51}, .options = {.mesh = MeshSizes{.tp = 2}}, .num_items = 6};
  const auto seen = ranks.pass();
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0].size(), 6U);
}

TEST(RNG_006, CaseA11EverySampleIsSeen) {
  const SeededRanks ranks{.seeds = {100, 101}, .num_items = 8, .batch_size = 2};
  EXPECT_EQ(seen_by(ranks.pass()), (std::multiset<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(RNG_006, AUsersGeneratorIsTheSynchronisedOne) {
  GradientState state;
  const auto generator = random::make_generator(3);
  const DataLoader loader(Ids{6}, {.shuffle = true, .generator = generator});
  const auto prepared = prepare_data_loader(loader, {.rank = 0, .size = 2}, state);
  EXPECT_EQ(shard_options(prepared).synchronized_generator, generator);
}

// RNG-007: nothing to synchronise, and nothing drawn, on one rank, in order, or with a seedable sampler.
TEST(RNG_007, NothingIsSynchronisedWithoutNeed) {
  const auto prepared_without = [](bool shuffle, int world_size, bool seedable) {
    torch::manual_seed(7);
    GradientState state;
    const DataLoader loader(Ids{6}, {.shuffle = shuffle});
    const auto prepared = prepare_data_loader(loader, {.rank = 0, .size = world_size}, state,
                                              {.use_seedable_sampler = seedable, .data_seed = 1});
    EXPECT_FALSE(shard_options(prepared).synchronized_generator.defined());
    const auto next_draw = random::draw_seed();
    torch::manual_seed(7);
    EXPECT_EQ(next_draw, random::draw_seed());
  };
  prepared_without(/*shuffle=*/true, /*world_size=*/1, /*seedable=*/false);
  prepared_without(/*shuffle=*/false, /*world_size=*/2, /*seedable=*/false);
  prepared_without(/*shuffle=*/true, /*world_size=*/2, /*seedable=*/true);
}

// With use_seedable_sampler that holds for a user's sampler too, whose order is then his own to make equal.
TEST(RNG_007, NothingIsSynchronisedWithUseSeedableSampler) {
  struct Own final : test::ListSampler {
    Own() : ListSampler({1, 0}) {}
    at::Generator* generator() override { return &slot; }
    at::Generator slot;
  };
  GradientState state;
  for (const bool seedable : {false, true}) {
    const DataLoader loader(Ids{2}, {.sampler = std::make_shared<Own>()});
    const auto prepared =
        prepare_data_loader(loader, {.rank = 0, .size = 2}, state, {.use_seedable_sampler = seedable});
    EXPECT_EQ(shard_options(prepared).synchronized_generator.defined(), !seedable);
  }
}

// Case A1: a loader that is a rank's part already.
DataLoader distributed(World world) {
  const DistributedSamplerOptions in_order{.shuffle = false};
  return DataLoader(Ids{16}, {.batch_size = 2, .sampler = std::make_shared<DistributedSampler>(16, world, in_order)});
}

TEST(CaseA1, ALoaderThatIsShardedByRankIsRefused) {
  const std::string expected =
      "prepare_data_loader: expected a loader over all the data, got one whose sampler hands out one rank's part "
      "already: sharded again, most samples would not be seen. "
      "Use an ordinary sampler, or pass already_sharded=true to keep this one.";
  EXPECT_EQ(refusal(distributed({.rank = 0, .size = 2}), 2, {}), expected);
  const DataLoader plain(Ids{4});
  auto shard = std::make_shared<BatchSamplerShard>(plain.batch_sampler(), World{.rank = 0, .size = 2});
  EXPECT_EQ(refusal(DataLoader(Ids{4}, {.batch_sampler = shard}), 2, {}), expected);
  GradientState state;
  EXPECT_EQ(drain_loader(*prepare_data_loader(distributed({}), {}, state)).size(), 8u);  // one rank: nothing is lost
}

TEST(CaseA1, AlreadyShardedKeepsItAndEverySampleIsSeenOnce) {
  std::multiset<std::int64_t> all;
  for (std::int64_t i = 0; i < 16; ++i) all.insert(i);
  const auto ranks = pass_of_ranks(2, distributed, {.already_sharded = true});
  EXPECT_EQ(ranks[0], (Batches{{0, 2}, {4, 6}, {8, 10}, {12, 14}}));
  EXPECT_EQ(seen_by(ranks), all);
}

TEST(CaseA1, AlreadyShardedStillMovesForwardsTheEpochAndCounts) {
  GradientState state;
  const World world{.rank = 0, .size = 2};
  auto sampler = std::make_shared<DistributedSampler>(16, world, DistributedSamplerOptions{.seed = 5});
  const DataLoader loader(Ids{16}, {.batch_size = 2, .sampler = sampler});
  const auto prepared = prepare_data_loader(loader, world, state, {.already_sharded = true});
  DistributedSampler expected(16, world, {.seed = 5});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    expected.set_epoch(epoch);
    Indices order;
    for (const auto& batch : drain_loader(*prepared)) order.insert(order.end(), batch.begin(), batch.end());
    EXPECT_EQ(order, test::drain(expected));
  }
  EXPECT_EQ(prepared->total_batch_size(), 4);
  EXPECT_EQ(prepared->remainder(), -1);  // its padding need not stand at the end
  const auto moved = prepare_data_loader(loader, world, state, {.device = at::kMeta, .already_sharded = true});
  for (auto& batch : *moved) EXPECT_TRUE(batch.tensor().is_meta());
  EXPECT_NE(refusal(loader, 2, {.split_batches = true, .already_sharded = true}).find("split_batches=false"),
            std::string::npos);
}

TEST(PrepareDataLoader, StartsWorkersAsTold) {
  test::ThreadCounter threads;
  GradientState state;
  const DataLoader loader(Ids{8}, {.num_workers = 2});
  drain_loader(*prepare_data_loader(loader, {}, state, {.start_thread = threads.starter()}));
  EXPECT_EQ(threads.started, 2);
  EXPECT_EQ(threads.running, 0);
}

TEST(PrepareDataLoader, RefusesARankOutsideTheWorldAndASamplerItCannotPutIn) {
  GradientState state;
  EXPECT_THROW(prepare_data_loader(DataLoader(Ids{4}), {.rank = 2, .size = 2}, state), InvalidArgument);
  struct Fixed final : ListBatches {
    Fixed() : ListBatches({{0, 1}}, 2) {}
    [[nodiscard]] std::shared_ptr<Sampler> sampler() const override { return std::make_shared<RandomSampler>(2); }
  };
  EXPECT_NE(refusal(DataLoader(Ids{2}, {.batch_sampler = std::make_shared<Fixed>()}), 1, {.use_seedable_sampler = true})
                .find("with_sampler"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::data
