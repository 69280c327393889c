// What a prepared loader's state_dict() holds, and passes that are taken up, skipped or broken off.
#include "lockstep/data/data_testing.h"
#include "lockstep/data/even_batches_scope.h"
#include "lockstep/data/prepare_data_loader.h"
#include "lockstep/data/skip_first_batches.h"
#include "lockstep/random/generator.h"
#include "lockstep/state/partial_state.h"
#include "run_ranks.h"

namespace lockstep::data {
namespace {

using state::GradientState;
using test::Batches;
using test::Count;
using test::drain_loader;
using test::head;
using test::Ids;
using test::Indices;
using test::message_of;

const PrepareOptions kStateful{.use_stateful_dataloader = true};

DataLoader shuffled(std::size_t n, std::int64_t b, std::int64_t seed) {
  return DataLoader(Ids{n}, {.batch_size = b, .shuffle = true, .generator = random::make_generator(seed)});
}

std::shared_ptr<PreparedDataLoader> stateful(std::size_t n, std::int64_t b, World world, GradientState& state) {
  return prepare_data_loader(DataLoader(Ids{n}, {.batch_size = b}), world, state, kStateful);
}

TEST(CaseE3, ADispatchedShuffleGoesOnWithTheItemsThatAreLeft) {
  lockstep::test::run_thread_ranks(2, [] {
    GradientState state;
    const state::PartialState process;
    const World world{.rank = process.process_index(), .size = process.num_processes()};
    const auto make = [&] {
      return prepare_data_loader(DataLoader(Ids{24}, {.batch_size = 2, .shuffle = true}), world, state,
                                 {.dispatch_batches = true,
                                  .use_stateful_dataloader = true,
                                  .device = at::kCPU,
                                  .group = process.world_group()});
    };
    const auto before = make();
    std::multiset<std::int64_t> seen;
    const auto count = [&seen](const Batches& batches) {
      for (const auto& batch : batches) seen.insert(batch.begin(), batch.end());
    };
    count(head(*before, 2));
    const auto after = make();
    after->load_state_dict(before->state_dict());
    count(drain_loader(*after));
    EXPECT_EQ(seen.size(), 12U);
    EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 12U) << "none came twice";
  });
}

// Whatever the generator of the loader that loads it was seeded with.
TEST(DATA_111, AStateBetweenPassesIsFollowedByTheVeryNextOrder) {
  for (const int world_size : {1, 2}) {
    GradientState state;
    const World world{.rank = 0, .size = world_size};
    const auto make = [&](std::int64_t seed) {
      return prepare_data_loader(shuffled(16, 2, seed), world, state, kStateful);
    };
    for (const int num_passes : {0, 1}) {
      const auto whole = make(1);
      for (int pass = 0; pass < num_passes; ++pass) drain_loader(*whole);
      const auto saved = whole->state_dict();
      const auto after = make(2);
      after->load_state_dict(saved);
      EXPECT_EQ(after->iteration(), num_passes);
      EXPECT_EQ(drain_loader(*after), drain_loader(*whole)) << num_passes << " passes";
      EXPECT_EQ(drain_loader(*after), drain_loader(*whole));
    }
  }
}

TEST(DATA_111, AGeneratorsStateThatIsNoneIsRefusedAndNothingChanges) {
  GradientState state;
  const auto loader = prepare_data_loader(shuffled(8, 1, 1), {}, state, kStateful);
  const auto before = loader->state_dict();
  auto wrong = stateful(8, 1, {}, state)->state_dict();
  wrong.set("_num_yielded", 3);
  wrong.set("samples", 3);
  wrong.set("generator", 7);
  EXPECT_THROW(loader->load_state_dict(wrong), TypeError);
  wrong.set("generator", at::zeros({5}, at::kByte));
  const auto text = message_of<InvalidArgument>([&] { loader->load_state_dict(wrong); });
  EXPECT_NE(text.find("'generator'"), std::string::npos) << text;
  EXPECT_EQ(loader->state_dict(), before);
  EXPECT_EQ(drain_loader(*loader).size(), 8U);
}

// Case E5: 12 samples were seen on two ranks, and on three ranks one step more is 3.
TEST(CaseE5, APassGoesOnOnAnotherNumberOfRanks) {
  GradientState state;
  const auto before = stateful(30, 2, {.rank = 0, .size = 2}, state);
  head(*before, 3);
  std::multiset<std::int64_t> seen;
  for (int rank = 0; rank < 3; ++rank) {
    const auto after = stateful(30, 2, {.rank = rank, .size = 3}, state);
    after->load_state_dict(before->state_dict());
    for (const auto& batch : drain_loader(*after)) seen.insert(batch.begin(), batch.end());
  }
  std::multiset<std::int64_t> rest;
  for (std::int64_t i = 12; i < 30; ++i) rest.insert(i);
  EXPECT_EQ(seen, rest);

  testing::internal::CaptureStderr();
  const auto uneven = stateful(30, 4, {.rank = 0, .size = 2}, state);
  uneven->load_state_dict(before->state_dict());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("4 of them come again"), std::string::npos);
  EXPECT_EQ(drain_loader(*uneven).front(), (Indices{8, 9, 10, 11}));
}

// One step of 20 was all there is, of 22 samples: the saved pass is over.
TEST(CaseE5, APlaceBehindTheLastStepEndsThePassThatWasSaved) {
  GradientState state;
  const auto make = [&](std::int64_t b, int size) {
    return prepare_data_loader(DataLoader(Ids{22}, {.batch_size = b, .drop_last = true}), {.rank = 0, .size = size},
                               state, kStateful);
  };
  const auto before = make(1, 1);
  head(*before, 21);
  const auto after = make(5, 4);
  after->load_state_dict(before->state_dict());
  EXPECT_TRUE(drain_loader(*after).empty());
  EXPECT_EQ(after->iteration(), 1);
  EXPECT_EQ(drain_loader(*after).size(), 1U);
  EXPECT_EQ(after->iteration(), 2);
}

TEST(DATA_111, AnotherEpochThanTheSavedOneBeginsAtItsStart) {
  GradientState state;
  const auto before = stateful(8, 1, {}, state);
  head(*before, 3);
  const auto after = stateful(8, 1, {}, state);
  after->load_state_dict(before->state_dict());
  after->set_epoch(5);
  EXPECT_EQ(after->state_dict()["_num_yielded"], Value(0));
  EXPECT_EQ(drain_loader(*after).size(), 8U);
}

TEST(DATA_111, BatchesThatTheLoaderItselfSkipsAreNotSkippedAgain) {
  GradientState state;
  const auto make = [&state] {
    return std::make_shared<DataLoaderShard>(
        DataLoader(Ids{8}), state, DataLoaderShardOptions{.skip_batches = 2, .use_stateful_dataloader = true});
  };
  const auto before = make();
  EXPECT_EQ(head(*before, 1), (Batches{{2}}));
  const auto after = make();
  after->load_state_dict(before->state_dict());
  EXPECT_EQ(drain_loader(*after), (Batches{{3}, {4}, {5}, {6}, {7}}));
  EXPECT_EQ(drain_loader(*after).size(), 6U);
}

TEST(DATA_111, WorkersDoNotChangeThePlace) {
  GradientState state;
  const auto make = [&state] {
    return prepare_data_loader(DataLoader(Ids{9}, {.batch_size = 1, .num_workers = 2}), {}, state, kStateful);
  };
  const auto before = make();
  head(*before, 4);
  const auto after = make();
  after->load_state_dict(before->state_dict());
  EXPECT_EQ(drain_loader(*after), (Batches{{4}, {5}, {6}, {7}, {8}}));
}

// Resuming where an epoch ended.
TEST(CaseE1, APassOfWhichEverythingIsSkippedIsFollowedByAWholeOne) {
  for (const std::int64_t num_skipped : {4, 7}) {
    GradientState state;
    const auto loader = prepare_data_loader(DataLoader(Ids{8}, {.batch_size = 2}), {}, state);
    const auto once = skip_first_batches(*loader, num_skipped, /*every_epoch=*/false);
    EXPECT_TRUE(drain_loader(*once).empty());
    EXPECT_EQ(drain_loader(*once).size(), 4U);
  }
}

// The workers have fetched all of the first pass when it is left.
TEST(CaseE1, APassThatIsLeftEarlyIsTakenUpAgainAlsoWithWorkers) {
  for (const int num_workers : {0, 2}) {
    const DataLoader plain(Ids{5}, {.num_workers = num_workers});
    const auto once = skip_first_batches(plain, 1, /*every_epoch=*/false);
    EXPECT_EQ(head(once, 1), (Batches{{1}}));
    EXPECT_EQ(drain_loader(once).size(), 4U);
    EXPECT_EQ(drain_loader(once).size(), 5U);
  }
}

TEST(DATA_107, SkipsAddUpAndANegativeOneIsNone) {
  GradientState state;
  const auto loader = prepare_data_loader(DataLoader(Ids{8}), {}, state);
  EXPECT_EQ(drain_loader(*skip_first_batches(*skip_first_batches(*loader, 2), -1)).front(), (Indices{2}));
  EXPECT_EQ(drain_loader(*skip_first_batches(*skip_first_batches(*loader, -1), 2)).front(), (Indices{2}));
  const auto three_then_one = skip_first_batches(*skip_first_batches(*loader, 1), 2, /*every_epoch=*/false);
  EXPECT_EQ(drain_loader(*three_then_one).size(), 5U);
  EXPECT_EQ(drain_loader(*three_then_one).size(), 7U) << "the one of every epoch stays";
  EXPECT_EQ(drain_loader(*three_then_one).size(), 7U);
}

// 3 samples are left, for two ranks that take two each.
TEST(DATA_106, ALoaderThatIsSkippedBeforeItIsPreparedCountsWhatIsLeft) {
  for (int rank = 0; rank < 2; ++rank) {
    GradientState state;
    const auto plain = skip_first_batches(DataLoader(Ids{5}, {.batch_size = 2}), 1);
    EXPECT_EQ(plain.batch_sampler()->num_indices(), 3);
    const auto loader = prepare_data_loader(plain, {.rank = rank, .size = 2}, state);
    EXPECT_EQ(drain_loader(*loader), (rank == 0 ? Batches{{2, 3}} : Batches{{4, 2}}));
    EXPECT_EQ(loader->remainder(), 3);
    const auto nothing = skip_first_batches(DataLoader(Ids{5}, {.batch_size = 4}), 2);
    const auto split =
        prepare_data_loader(nothing, {.rank = rank, .size = 2}, state, {.split_batches = true, .even_batches = false});
    EXPECT_EQ(split->length(), 0);
  }
}

// A sampler has one cursor. On one rank the two are one loader; on two the first pass would end early without a word.
TEST(PreparedDataLoader, TwoOverOneSamplerDoNotRunInEachOther) {
  for (const int world_size : {1, 2}) {
    GradientState state;
    const DataLoader loader(Ids{12}, {.batch_size = 1});
    const World world{.rank = 0, .size = world_size};
    const auto train = prepare_data_loader(loader, world, state), eval = prepare_data_loader(loader, world, state);
    const auto pass = train->pass();
    static_cast<void>(pass->next());
    drain_loader(*eval);
    const auto text = message_of<RuntimeError>([&pass] { pass->next(); });
    EXPECT_NE(text.find("Use a second loader"), std::string::npos) << text;
  }
}

// Unlike an IterableDatasetShard, a user's stream does not say what all ranks take together: nothing is cut off.
TEST(CaseA1, AStreamThatIsOneRanksPartHasNoRemainder) {
  GradientState state;
  const auto loader = prepare_data_loader(DataLoader(std::make_shared<Count>(5, /*sized=*/true), {.batch_size = 2}),
                                          {.rank = 0, .size = 2}, state, {.already_sharded = true});
  EXPECT_EQ(loader->total_batch_size(), 4);
  drain_loader(*loader);
  EXPECT_EQ(loader->remainder(), -1);
}

TEST(EvenBatchesScope, RestoresAShardThatTwoLoadersShare) {
  GradientState state;
  const auto loader = prepare_data_loader(DataLoader(Ids{5}), {.rank = 1, .size = 2}, state);
  { const EvenBatchesScope uneven({loader, skip_first_batches(*loader, 1)}, /*even_batches=*/false); }
  EXPECT_EQ(drain_loader(*loader).size(), 3U);
}

}  // namespace
}  // namespace lockstep::data
