#include "lockstep/data/iterable_dataset.h"

#include <ATen/ops/randperm.h>

#include "lockstep/data/data_loader.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/data/iterable_dataset_shard.h"
#include "lockstep/data/prepare_data_loader.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

using test::Batches;
using test::Count;
using test::drain;
using test::drain_loader;
using test::Indices;
using test::message_of;

/// A user's stream: no base class, and everything that a stream may have.
struct Shuffled {
  std::int64_t count;
  at::Generator own;
  std::vector<std::int64_t> epochs{};
  at::Tensor order{};
  std::int64_t next_item = 0;

  void reset() {
    order = at::randperm(count, own, at::kLong);
    next_item = 0;
  }
  std::optional<at::Tensor> next() { return next_item < count ? std::optional(order[next_item++]) : std::nullopt; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(count); }
  at::Generator& generator() { return own; }
};

struct Told : Shuffled {
  void set_epoch(std::int64_t epoch) { epochs.push_back(epoch); }
};

struct Words {
  int left = 0;
  void reset() { left = 3; }
  std::optional<std::string> next() { return left-- > 0 ? std::optional("w" + std::to_string(left)) : std::nullopt; }
};

Indices permutation(std::int64_t n, std::int64_t seed) {
  const auto order = at::randperm(n, random::make_generator(seed), at::kLong);
  return test::to_indices(order);
}

IterableDatasetShard shard_of(std::int64_t n, std::int64_t b, World world, bool split = false, bool drop_last = false) {
  return {std::make_shared<Count>(n, /*sized=*/true),
          world,
          {.batch_size = b, .drop_last = drop_last, .split_batches = split}};
}

std::vector<Indices> shards(std::int64_t n, std::int64_t b, int w, bool split = false, bool drop_last = false) {
  std::vector<Indices> all;
  for (int rank = 0; rank < w; ++rank) {
    auto shard = shard_of(n, b, {.rank = rank, .size = w}, split, drop_last);
    all.push_back(drain(shard));
  }
  return all;
}

TEST(MakeIterableDataset, TakesWhatAUsersStreamHas) {
  auto source = std::make_shared<Told>(Told{{.count = 3, .own = random::make_generator(1)}});
  const auto dataset = make_iterable_dataset(source);
  EXPECT_EQ(dataset->size(), 3);
  EXPECT_TRUE(dataset->follows_epochs());
  dataset->set_epoch(4);
  EXPECT_EQ(source->epochs, (Indices{4}));
  EXPECT_EQ(*dataset->generator(), source->own);
  const auto words = make_iterable_dataset(Words{});
  EXPECT_EQ(words->size(), std::nullopt);
  EXPECT_FALSE(words->follows_epochs());
  EXPECT_EQ(words->generator(), nullptr);
  words->reset();
  EXPECT_EQ(words->next(), std::optional<Value>("w2"));
}

TEST(IterableDataLoader, CollectsItemsIntoBatches) {
  const DataLoader loader(std::make_shared<Count>(5), {.batch_size = 2});
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(drain_loader(loader), (Batches{{0, 1}, {2, 3}, {4}}));
  const DataLoader dropping(std::make_shared<Count>(5), {.batch_size = 2, .drop_last = true});
  EXPECT_EQ(drain_loader(dropping), (Batches{{0, 1}, {2, 3}}));
  EXPECT_TRUE(dropping.drop_last());
  const DataLoader items(Words{}, {.batch_size = std::nullopt});
  std::vector<Value> words;
  for (const auto& word : items) words.push_back(word);
  EXPECT_EQ(words, (std::vector<Value>{"w2", "w1", "w0"}));
}

TEST(IterableDataLoader, KnowsItsLengthIfTheDatasetKnowsItsOwn) {
  const auto length = [](std::int64_t n, bool drop_last) {
    return DataLoader(std::make_shared<Count>(n, true), {.batch_size = 2, .drop_last = drop_last}).length();
  };
  EXPECT_EQ(length(5, false), 3);
  EXPECT_EQ(length(5, true), 2);
  EXPECT_EQ(length(4, false), 2);
  const DataLoader unsized(std::make_shared<Count>(5), {.batch_size = 2});
  EXPECT_NE(message_of<TypeError>([&] { static_cast<void>(unsized.length()); }).find("knows its size"),
            std::string::npos);
  EXPECT_THROW(static_cast<void>(unsized.dataset()), TypeError);
}

TEST(IterableDataLoader, RefusesAnOrderFromOutsideAndWorkers) {
  const auto make = [](DataLoaderOptions options) { DataLoader(std::make_shared<Count>(5), std::move(options)); };
  EXPECT_THROW(make({.shuffle = true}), InvalidArgument);
  EXPECT_THROW(make({.sampler = std::make_shared<SequentialSampler>(5)}), InvalidArgument);
  EXPECT_THROW(make({.batch_sampler = std::make_shared<test::ListBatches>(Batches{{0}})}), InvalidArgument);
  const auto message = message_of<InvalidArgument>([&] { make({.num_workers = 2}); });
  EXPECT_NE(message.find("num_workers 2"), std::string::npos) << message;
}

TEST(DATA_050, EachRankTakesItsPartOfEveryGroup) {
  EXPECT_EQ(shards(8, 2, 2), (std::vector<Indices>{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(shards(8, 4, 2, /*split=*/true), (std::vector<Indices>{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  const auto stream = std::make_shared<Count>(8);
  IterableDatasetShard shard(stream, {.rank = 1, .size = 2}, {.batch_size = 2});
  drain(shard);
  EXPECT_EQ(stream->num_reads, 8);  // the whole stream
}

TEST(DATA_051, TheShortGroupIsFilledFromTheFirst) {
  EXPECT_EQ(shards(22, 4, 3)[2], (Indices{8, 9, 10, 11, 20, 21, 0, 1}));
  EXPECT_EQ(shards(2, 4, 2, /*split=*/true), (std::vector<Indices>{{0, 1}, {0, 1}}));
}

TEST(DATA_052, DropLastDropsTheShortGroup) {
  EXPECT_EQ(shards(7, 2, 2, false, /*drop_last=*/true), (std::vector<Indices>{{0, 1}, {2, 3}}));
  EXPECT_EQ(shards(0, 2, 2), (std::vector<Indices>{{}, {}}));
}

TEST(DATA_053, RefusesABatchSizeThatCannotBeSplit) {
  const auto message = message_of<InvalidArgument>([] { shard_of(4, 3, {.rank = 0, .size = 2}, /*split=*/true); });
  EXPECT_NE(message.find("batch_size 3"), std::string::npos) << message;
  EXPECT_NE(message.find("world size 2"), std::string::npos) << message;
}

TEST(DATA_054, RefusesToSplitABatchOfOne) {
  EXPECT_THROW(shard_of(7, 1, {.rank = 0, .size = 2}, /*split=*/true), InvalidArgument);
}

TEST(DATA_055, KnowsItsLengthIfTheDatasetDoes) {
  EXPECT_EQ(shard_of(22, 4, {.rank = 0, .size = 3}).size(), 8);
  EXPECT_EQ(shard_of(22, 4, {.rank = 0, .size = 3}, false, /*drop_last=*/true).size(), 4);
  EXPECT_EQ(IterableDatasetShard(std::make_shared<Count>(5), {}).size(), std::nullopt);
}

TEST(DATA_056, TheLengthIsTrueWithSplitBatchesToo) {
  EXPECT_EQ(shard_of(1, 6, {.rank = 0, .size = 3}, /*split=*/true).size(), 2);
}

TEST(DATA_057, EvenBatchesDoesNotMatterToAStream) {
  for (const bool even_batches : {false, true}) {
    state::GradientState state;
    const auto loader = prepare_data_loader(DataLoader(std::make_shared<Count>(5), {.batch_size = 2}),
                                            {.rank = 1, .size = 2}, state, {.even_batches = even_batches});
    EXPECT_EQ(drain_loader(*loader), (Batches{{2, 3}, {1, 2}}));  // 0 fills up rank 0's [4 0]
  }
}

TEST(DATA_058, AGeneratorIsSeededWithTheEpochIfNothingFollowsEpochs) {
  auto source = std::make_shared<Shuffled>(Shuffled{.count = 6, .own = random::make_generator(99)});
  state::GradientState state;
  const auto loader = prepare_data_loader(DataLoader(source, {.batch_size = 6}), {.rank = 0, .size = 2}, state);
  const auto first_six = [&] { return drain_loader(*loader)[0]; };
  for (const std::int64_t epoch : {0, 1}) {
    auto twice = permutation(6, epoch);
    EXPECT_EQ(first_six(), twice);
  }
}

TEST(DATA_059, WithoutAnEpochItIsThatOfEpochZero) {
  IterableDatasetShard shard(make_iterable_dataset(Shuffled{.count = 6, .own = random::make_generator(99)}), {},
                             {.batch_size = 6});
  EXPECT_EQ(drain(shard), permutation(6, 0));
  EXPECT_EQ(drain(shard), permutation(6, 0));
}

TEST(DATA_060, TheEpochIsToldToADatasetThatFollowsIt) {
  auto source = std::make_shared<Told>(Told{{.count = 6, .own = random::make_generator(99)}});
  IterableDatasetShard shard(make_iterable_dataset(source), {}, {.batch_size = 6});
  shard.set_epoch(3);
  EXPECT_EQ(source->epochs, (Indices{3}));
  EXPECT_EQ(drain(shard), permutation(6, 99));  // which decides by itself: its generator is left alone
}

TEST(DATA_014, TheInnerLoaderHasARanksBatchSize) {
  state::GradientState state;
  const DataLoader loader(std::make_shared<Count>(9), {.batch_size = 4, .drop_last = true});
  const World world{.rank = 0, .size = 2};
  const auto whole = prepare_data_loader(loader, world, state);
  EXPECT_EQ(whole->batch_size(), 4);
  EXPECT_TRUE(whole->drop_last());
  EXPECT_EQ(whole->total_batch_size(), 8);
  const auto split = prepare_data_loader(loader, world, state, {.split_batches = true});
  EXPECT_EQ(split->batch_size(), 2);
  EXPECT_EQ(split->total_batch_size(), 4);
  EXPECT_EQ(drain_loader(*split), (Batches{{0, 1}, {4, 5}}));
}

TEST(DATA_069, TheRemainderOfASizedStreamIsZeroOnSeveralRanks) {
  state::GradientState state;
  const auto remainder = [&](bool sized, World world) {
    const auto loader =
        prepare_data_loader(DataLoader(std::make_shared<Count>(5, sized), {.batch_size = 2}), world, state);
    for (const auto& batch : *loader) {
      static_cast<void>(batch);
      return loader->remainder();
    }
    return std::int64_t{-2};
  };
  EXPECT_EQ(remainder(true, {.rank = 1, .size = 2}), 0);
  EXPECT_EQ(remainder(false, {.rank = 1, .size = 2}), -1);
  EXPECT_EQ(remainder(true, {}), 1);
}

TEST(RNG_008, AStreamsGeneratorIsTheSynchronisedOneAndThenReseededByEpoch) {
  auto source = std::make_shared<Shuffled>(Shuffled{.count = 6, .own = random::make_generator(7)});
  state::GradientState state;
  int synchronised = 0;
  PrepareOptions options;
  options.hooks.synchronize_generator = [&](at::Generator& generator) {
    ++synchronised;
    EXPECT_EQ(generator, source->own);
    generator.set_current_seed(1234);
  };
  const auto loader =
      prepare_data_loader(DataLoader(source, {.batch_size = 6}), {.rank = 0, .size = 2}, state, options);
  EXPECT_EQ(drain_loader(*loader)[0], permutation(6, 0));
  EXPECT_EQ(synchronised, 1);
  const auto alone = prepare_data_loader(DataLoader(source, {.batch_size = 6}), {}, state, options);
  drain_loader(*alone);
  EXPECT_EQ(synchronised, 1);  // one rank has nobody to agree with
}

TEST(CaseA1, AStreamThatIsSharedOutAlreadyIsRefused) {
  state::GradientState state;
  const World world{.rank = 0, .size = 2};
  const auto shard =
      std::make_shared<IterableDatasetShard>(std::make_shared<Count>(8), world, IterableShardOptions{.batch_size = 2});
  const DataLoader loader(shard, {.batch_size = 2});
  EXPECT_THROW(static_cast<void>(prepare_data_loader(loader, world, state)), InvalidArgument);
  const auto kept = prepare_data_loader(loader, world, state, {.device = at::kCPU, .already_sharded = true});
  EXPECT_EQ(drain_loader(*kept), (Batches{{0, 1}, {4, 5}}));
}

}  // namespace
}  // namespace lockstep::data
