#include "lockstep/data/data_loader_shard.h"

#include "lockstep/data/data_testing.h"
#include "lockstep/data/seedable_sampler.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

using state::GradientState;
using test::Batches;
using test::drain_loader;
using test::Ids;
using test::Indices;
using test::ListBatches;

// A loader over n items in batches of b, as one rank of w has it.
struct Rank {
  GradientState state;
  DataLoaderShard loader;
  Rank(std::size_t n, std::int64_t b, World world = {}, DataLoaderShardOptions options = {}, ShardOptions shard = {},
       bool drop_last = false)
      : loader(sharded(DataLoader(Ids{n}, {.batch_size = b, .drop_last = drop_last}), world, shard), state,
               std::move(options)) {}

  static DataLoader sharded(const DataLoader& loader, World world, ShardOptions options) {
    if (world.size == 1) return loader;
    return loader.with_batch_sampler(std::make_shared<BatchSamplerShard>(loader.batch_sampler(), world, options));
  }
};

std::vector<bool> ends_of_pass(DataLoaderShard& loader) {
  std::vector<bool> ends;
  for (auto& batch : loader) {
    static_cast<void>(batch);
    ends.push_back(loader.end_of_dataloader());
  }
  return ends;
}

std::int64_t remainder_in_pass(Rank& rank) {
  for (auto& batch : rank.loader) {
    static_cast<void>(batch);
    return rank.state.remainder();
  }
  ADD_FAILURE() << "no batch";
  return 0;
}

// DATA-017: length, total batch size and dataset length.
TEST(DATA_017, CountsStepsSamplesPerStepAndSamples) {
  Rank rank(22, 4, {.rank = 1, .size = 3});
  EXPECT_EQ(rank.loader.length(), 2);
  EXPECT_EQ(rank.loader.total_batch_size(), 12);
  EXPECT_EQ(rank.loader.total_dataset_length(), 22);
  Rank split(22, 4, {.rank = 1, .size = 2}, {}, {.split_batches = true});
  EXPECT_EQ(split.loader.total_batch_size(), 4);
  EXPECT_EQ(split.loader.length(), 6);
}

// DATA-018: moved only if asked to.
TEST(DATA_018, MovesBatchesOnlyIfADeviceIsGiven) {
  for (const bool non_blocking : {false, true}) {
    Rank moved(2, 1, {}, {.device = at::Device(at::kMeta), .non_blocking = non_blocking});
    for (auto& batch : moved.loader) EXPECT_TRUE(batch.tensor().is_meta());
  }
  Rank kept(2, 1);
  for (auto& batch : kept.loader) EXPECT_TRUE(batch.tensor().is_cpu());
}

// DATA-065: the end flag is true exactly while the body of the last step runs.
TEST(DATA_065, TheEndIsSeenInTheLastStepOnly) {
  Rank rank(5, 2);
  EXPECT_EQ(ends_of_pass(rank.loader), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(ends_of_pass(rank.loader), (std::vector<bool>{false, false, true}));
}

// DATA-066: n mod total_batch_size during the whole pass, or -1 with drop_last.
TEST(DATA_066, TheRemainderIsKnownFromTheFirstStep) {
  const auto remainder = [](std::size_t n, std::int64_t b, int w, ShardOptions shard = {}, bool drop_last = false) {
    Rank rank(n, b, {.rank = 0, .size = w}, {}, shard, drop_last);
    return remainder_in_pass(rank);
  };
  EXPECT_EQ(remainder(24, 4, 3), 0);
  EXPECT_EQ(remainder(22, 4, 2, {.split_batches = true}), 2);
  EXPECT_EQ(remainder(22, 4, 3, {}, true), -1);
  EXPECT_EQ(remainder(512, 16, 2), 0);  // case B1: nothing missing, so nothing is cut
}

// DATA-067: the number of real samples in the last global batch, not of those added.
TEST(DATA_067, TheRemainderCountsRealSamples) {
  Rank rank(22, 4, {.rank = 0, .size = 3});
  EXPECT_EQ(remainder_in_pass(rank), 10);
}

// DATA-068: -1 if the total batch size cannot be found.
TEST(DATA_068, TheRemainderIsUnknownWithoutABatchSize) {
  GradientState state;
  const auto batches = std::make_shared<ListBatches>(Batches{{0, 1}, {2, 3, 4}});
  DataLoaderShard loader(DataLoader(Ids{5}, {.batch_sampler = batches}), state);
  for (auto& batch : loader) EXPECT_EQ((static_cast<void>(batch), state.remainder()), -1);
  EXPECT_EQ(loader.total_batch_size(), std::nullopt);
  DataLoaderShard items(DataLoader(Ids{2}, {.batch_size = std::nullopt}), state);
  for (auto& item : items) EXPECT_EQ((static_cast<void>(item), state.remainder()), -1);
}

// DATA-070: flags are reset and the loader registered at the start; it unregisters at the end, its own flags stay.
TEST(DATA_070, RegistersForThePassAndKeepsItsOwnFlags) {
  Rank rank(5, 4);
  EXPECT_EQ(rank.loader.remainder(), -1);
  auto pass = rank.loader.pass();
  EXPECT_EQ(rank.state.active_dataloader(), rank.loader.status());
  pass->next();
  EXPECT_EQ(rank.state.remainder(), 1);
  pass->next();
  EXPECT_TRUE(rank.state.end_of_dataloader());
  EXPECT_EQ(pass->next(), std::nullopt);
  EXPECT_EQ(rank.state.remainder(), -1);
  EXPECT_FALSE(rank.state.in_dataloader());
  EXPECT_TRUE(rank.loader.end_of_dataloader());
  EXPECT_EQ(rank.loader.remainder(), 1);
  pass = rank.loader.pass();
  EXPECT_FALSE(rank.loader.end_of_dataloader());
}

/// Ids that remember the epochs they were told, and what `look` saw then.
struct Told {
  std::size_t count = 4;
  std::vector<std::int64_t> epochs;
  std::function<void()> look;
  [[nodiscard]] std::size_t size() const { return count; }
  at::Tensor get(std::size_t i) { return test::id(i); }
  void set_epoch(std::int64_t epoch) {
    epochs.push_back(epoch);
    if (look) look();
  }
};

// DATA-071: an empty pass registers, unregisters, and does not count.
TEST(DATA_071, AnEmptyPassRegistersAndUnregistersAndDoesNotCount) {
  GradientState state;
  const auto nothing = std::make_shared<Told>(Told{.count = 0});
  std::size_t registered = 0;
  nothing->look = [&] { registered = state.num_registrations(); };
  DataLoaderShard loader(DataLoader(nothing, {.batch_size = 4}), state);
  EXPECT_EQ(ends_of_pass(loader), std::vector<bool>{});
  EXPECT_EQ(registered, 1u);
  EXPECT_EQ(state.num_registrations(), 0u);
  EXPECT_FALSE(loader.end_of_dataloader());
  EXPECT_EQ(loader.iteration(), 0);
}

// DATA-072: iteration counts exhausted passes; leaving during the last batch is leaving early.
TEST(DATA_072, OnlyAnExhaustedPassCounts) {
  Rank rank(4, 2);
  drain_loader(rank.loader);
  drain_loader(rank.loader);
  EXPECT_EQ(rank.loader.iteration(), 2);
  for (auto& batch : rank.loader) {
    static_cast<void>(batch);
    if (rank.loader.end_of_dataloader()) break;
  }
  EXPECT_EQ(rank.loader.iteration(), 2);
}

// DATA-073: an early exit leaves the loader registered; the next exhausted pass removes all registrations.
TEST(DATA_073, EarlyExitsStayRegisteredUntilAPassIsExhausted) {
  Rank rank(4, 2);
  for (std::size_t exits = 1; exits <= 2; ++exits) {
    for (auto& batch : rank.loader) {
      static_cast<void>(batch);
      break;
    }
    EXPECT_EQ(rank.state.num_registrations(), exits);
    EXPECT_TRUE(rank.state.in_dataloader());
  }
  drain_loader(rank.loader);
  EXPECT_EQ(rank.state.num_registrations(), 0u);
}

// DATA-074 and RNG-005: hooks first, then the flags, then set_epoch(iteration), then the batches; in every pass.
TEST(DATA_074, SetsTheEpochAfterSynchronisingAndResettingTheFlags) {
  GradientState state;
  std::vector<std::string> order;
  auto dataset = std::make_shared<Told>();
  DataLoaderShardOptions options{.synchronized_generator = random::make_generator(1)};
  options.hooks.begin_pass = [&] { order.push_back(state.in_dataloader() ? "begin, registered" : "begin"); };
  options.hooks.synchronize_generator = [&](at::Generator& generator) {
    order.push_back("synchronize " + std::to_string(generator.current_seed()));
  };
  options.hooks.on_batch = [&](const BatchInfo& info) { order.push_back("batch " + std::to_string(info.step)); };
  dataset->look = [&] { order.push_back(state.in_dataloader() ? "epoch, registered" : "epoch"); };
  DataLoaderShard loader(DataLoader(dataset, {.batch_size = 4}), state, options);
  drain_loader(loader);
  drain_loader(loader);
  const std::vector<std::string> once{"begin", "synchronize 1", "epoch, registered", "batch 0"};
  auto twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(order, twice);
  EXPECT_EQ(dataset->epochs, (Indices{0, 1}));
}

TEST(RNG_005, WithoutAGeneratorThereIsNoneToSynchronise) {
  GradientState state;
  DataLoaderShardOptions options;
  options.hooks.synchronize_generator = [](at::Generator&) { FAIL() << "called"; };
  DataLoaderShard loader(DataLoader(Ids{4}), state, options);
  EXPECT_EQ(drain_loader(loader).size(), 4u);
}

TEST(RNG_005, WhatTheHookPutsIntoTheGeneratorDecidesTheOrder) {
  const auto order_after_seed = [](std::uint64_t own_seed) {
    GradientState state;
    auto generator = random::make_generator(static_cast<std::int64_t>(own_seed));
    DataLoaderShardOptions options{.synchronized_generator = generator};
    options.hooks.synchronize_generator = [](at::Generator& shared) { shared.set_current_seed(99); };
    auto sampler = std::make_shared<RandomSampler>(8, RandomSamplerOptions{.generator = generator});
    DataLoaderShard loader(DataLoader(Ids{8}, {.sampler = sampler}), state, options);
    return drain_loader(loader);
  };
  EXPECT_EQ(order_after_seed(100), order_after_seed(101));
}

// DATA-075: the inner loader's accessors.
TEST(DATA_075, OffersTheInnerLoadersAccessors) {
  Rank rank(5, 2);
  EXPECT_EQ(rank.loader.batch_size(), 2);
  EXPECT_EQ(rank.loader.dataset().size(), 5);
  EXPECT_NE(std::dynamic_pointer_cast<SequentialSampler>(rank.loader.sampler()), nullptr);
  EXPECT_FALSE(rank.loader.drop_last());
  EXPECT_EQ(rank.loader.loader().num_workers(), 0);
  Rank sharded(5, 2, {.rank = 0, .size = 2});
  EXPECT_NE(std::dynamic_pointer_cast<SequentialSampler>(sharded.loader.sampler()), nullptr);
}

// DATA-076: the first k batches are fetched but not handed out; flags as in a full pass.
TEST(DATA_076, SkippedBatchesAreFetchedAndTheFlagsAreThoseOfTheFullPass) {
  Rank rank(7, 2, {}, {.skip_batches = 2});
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(drain_loader(rank.loader), (Batches{{4, 5}, {6}}));
  EXPECT_EQ(ends_of_pass(rank.loader), (std::vector<bool>{false, true}));
  EXPECT_EQ(remainder_in_pass(rank), 1);
  Rank all(4, 2, {}, {.skip_batches = 5});
  EXPECT_EQ(drain_loader(all.loader), Batches{});
  EXPECT_EQ(all.loader.iteration(), 1);
  EXPECT_EQ(all.state.num_registrations(), 0u);
}

// DATA-102: whom set_epoch reaches.
TEST(DATA_102, TheEpochReachesBatchSamplersAndTheirSampler) {
  for (const int world_size : {1, 2}) {
    GradientState state;
    auto sampler = std::make_shared<SeedableRandomSampler>(4, 42);
    auto dataset = std::make_shared<Told>();
    DataLoader inner(dataset, {.batch_size = 2, .sampler = sampler});
    DataLoaderShard loader(Rank::sharded(inner, {.rank = 0, .size = world_size}, {}), state);
    loader.set_epoch(5);
    EXPECT_EQ(loader.iteration(), 5);
    EXPECT_EQ(sampler->epoch(), 5);
    EXPECT_EQ(dataset->epochs, world_size == 1 ? Indices{5} : Indices{});  // not if a sampler inside a shard took it
  }
}

TEST(DATA_102, TheEpochReachesTheDatasetInsideAShardIfNoSamplerTakesIt) {
  GradientState state;
  auto dataset = std::make_shared<Told>();
  DataLoaderShard loader(Rank::sharded(DataLoader(dataset, {.batch_size = 2}), {.rank = 0, .size = 2}, {}), state);
  loader.set_epoch(3);
  EXPECT_EQ(dataset->epochs, (Indices{3}));
}

TEST(DATA_102, AUsersBatchSamplerInsideAShardIsToldTheEpoch) {
  struct ByEpoch : ListBatches {
    ByEpoch() : ListBatches({{0, 1}}, 2) {}
    void set_epoch(std::int64_t e) override { epoch = e; }
    std::int64_t epoch = -1;
  };
  GradientState state;
  auto batches = std::make_shared<ByEpoch>();
  DataLoader inner(Ids{2}, {.batch_sampler = batches});
  DataLoaderShard loader(Rank::sharded(inner, {.rank = 0, .size = 2}, {}), state);
  loader.set_epoch(3);
  EXPECT_EQ(batches->epoch, 3);
}

// DATA-104: leaving a pass and iterating again repeats its order.
TEST(DATA_104, AnEarlyExitRepeatsTheOrder) {
  GradientState state;
  DataLoader inner(Ids{8}, {.batch_size = 8, .sampler = std::make_shared<SeedableRandomSampler>(8, 42)});
  DataLoaderShard loader(inner, state);
  for (auto& batch : loader) {
    EXPECT_EQ(test::to_indices(batch), (Indices{6, 3, 0, 7, 2, 1, 4, 5}));
    break;
  }
  EXPECT_EQ(drain_loader(loader), (Batches{{6, 3, 0, 7, 2, 1, 4, 5}}));
  EXPECT_EQ(drain_loader(loader), (Batches{{4, 5, 7, 1, 3, 2, 6, 0}}));
}

// STATE-121: outside any pass false and -1; inside, the loader whose pass began last.
// STATE-122: after an inner pass is exhausted the outer loader is active again.
TEST(STATE_122, NestedPassesReadTheInnerLoaderAndThenTheOuterOneAgain) {
  GradientState state;
  DataLoaderShard outer(DataLoader(Ids{2}), state);
  DataLoaderShard inner(DataLoader(Ids{2}), state);
  std::vector<bool> seen;
  for (auto& batch : outer) {
    static_cast<void>(batch);
    seen.push_back(state.end_of_dataloader());
    for (auto& within : inner) {
      static_cast<void>(within);
      seen.push_back(state.end_of_dataloader());
    }
    seen.push_back(state.end_of_dataloader());
  }
  EXPECT_EQ(seen, (std::vector<bool>{false, false, true, false, true, false, true, true}));
  EXPECT_FALSE(state.end_of_dataloader());
}

// STATE-123: the gradient state does not keep a loader alive.
TEST(STATE_123, ALoaderThatIsGoneReadsAsNone) {
  GradientState state;
  {
    DataLoaderShard loader(DataLoader(Ids{4}), state);
    static_cast<void>(loader.pass());
    EXPECT_TRUE(state.in_dataloader());
  }
  EXPECT_FALSE(state.in_dataloader());
}

TEST(OnBatch, ReportsIndicesPaddingAndPlaceOfEachBatch) {
  struct Seen {
    Batch items;
    std::int64_t epoch, step;
    bool is_first, is_last;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen;
  DataLoaderShardOptions options{.skip_batches = 1};
  options.hooks.on_batch = [&](const BatchInfo& i) {
    seen.push_back({i.items, i.epoch, i.step, i.is_first, i.is_last});
  };
  Rank rank(9, 2, {.rank = 1, .size = 2}, options);
  drain_loader(rank.loader);
  drain_loader(rank.loader);
  const Seen middle{{{6, 7}, 0}, 0, 1, true, false};
  const Seen last{{{1, 2}, 2}, 0, 2, false, true};
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0], middle);
  EXPECT_EQ(seen[1], last);
  EXPECT_EQ(seen[3].epoch, 1);
}

TEST(DataLoaderShard, StaysRegisteredWhenAnItemFailsAndThePassIsOverNotExhausted) {
  struct Broken {
    [[nodiscard]] std::size_t size() const { return 3; }
    at::Tensor get(std::size_t i) {
      if (i == 2) throw std::runtime_error("no row");
      return test::id(i);
    }
  };
  for (const int num_workers : {0, 2}) {
    GradientState state;
    DataLoaderShard loader(DataLoader(Broken{}, {.num_workers = num_workers}), state);
    auto pass = loader.pass();
    EXPECT_EQ(test::to_indices(*pass->next()), (Indices{0}));
    EXPECT_THROW(pass->next(), DatasetError);  // one step early: it is read ahead
    EXPECT_EQ(loader.iteration(), 0);
    EXPECT_TRUE(state.in_dataloader());
    EXPECT_EQ(pass->next(), std::nullopt);
    EXPECT_EQ(loader.iteration(), 0);
  }
}

}  // namespace
}  // namespace lockstep::data
