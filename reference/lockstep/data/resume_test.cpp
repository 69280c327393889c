// Taking up a pass where it was left: skip_first_batches, and the state of a loader.
#include "lockstep/data/data_testing.h"
#include "lockstep/data/prepare_data_loader.h"
#include "lockstep/data/seedable_sampler.h"
#include "lockstep/data/skip_first_batches.h"
#include "lockstep/random/generator.h"
#include "lockstep/state/partial_state.h"
#include "run_ranks.h"

namespace lockstep::data {
namespace {

using lockstep::test::run_thread_ranks;
using state::GradientState;
using test::Batches;
using test::Count;
using test::drain_loader;
using test::head;
using test::Ids;
using test::Indices;
using test::message_of;

std::shared_ptr<PreparedDataLoader> prepared(std::size_t n, std::int64_t b, World world, GradientState& state,
                                             PrepareOptions options = {}) {
  return prepare_data_loader(DataLoader(Ids{n}, {.batch_size = b}), world, state, options);
}

/// A loader that rank 0 of the calling ranks reads for all.
std::shared_ptr<PreparedDataLoader> dispatched(DataLoader loader, GradientState& state, PrepareOptions options = {}) {
  const state::PartialState process;
  options.dispatch_batches = true;
  options.device = at::kCPU;
  options.group = process.world_group();
  return prepare_data_loader(std::move(loader), {.rank = process.process_index(), .size = process.num_processes()},
                             state, options);
}

bool is_rank_0() { return state::PartialState().is_main_process(); }

TEST(DATA_105, TheFirstBatchIsNumberKAndTheOriginalStaysWhole) {
  const std::vector<Batches> right = {{{4, 5}, {8, 0}}, {{6, 7}, {1, 2}}};
  for (int rank = 0; rank < 2; ++rank) {
    GradientState state;
    const auto loader = prepared(9, 2, {.rank = rank, .size = 2}, state);
    const auto skipped = skip_first_batches(*loader, 1);
    EXPECT_EQ(drain_loader(*skipped), right[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(drain_loader(*loader).size(), 3U);
    EXPECT_EQ(loader->length(), 3);
  }
}

TEST(DATA_105, TheOrderIsThatOfTheCurrentIteration) {
  GradientState state;
  const DataLoader shuffled(Ids{8}, {.batch_size = 1, .shuffle = true});
  const auto loader =
      prepare_data_loader(shuffled, {.rank = 1, .size = 2}, state, {.use_seedable_sampler = true, .data_seed = 42});
  loader->set_epoch(3);
  const auto whole = drain_loader(*loader);
  loader->set_epoch(3);
  EXPECT_EQ(drain_loader(*skip_first_batches(*loader, 2)), Batches(whole.begin() + 2, whole.end()));
  EXPECT_EQ(loader->iteration(), 3);
}

TEST(DATA_106, TheRemainderIsThatOfTheWholeLoader) {
  GradientState state;
  const auto skipped = skip_first_batches(*prepared(5, 2, {.rank = 0, .size = 2}, state), 1);
  for (const auto& batch : *skipped) EXPECT_EQ((static_cast<void>(batch), state.remainder()), 1);
  EXPECT_TRUE(skipped->end_of_dataloader());
  const auto dropping =
      prepare_data_loader(DataLoader(Ids{5}, {.batch_size = 1, .drop_last = true}), {.rank = 0, .size = 2}, state);
  EXPECT_TRUE(skip_first_batches(*dropping, 1)->drop_last());
}

TEST(DATA_107, TheLengthIsWhatIsLeftAndMoreThanThereIsHasNone) {
  GradientState state;
  const auto loader = prepared(5, 2, {}, state);
  EXPECT_EQ(skip_first_batches(*loader, 1)->length(), 2);
  EXPECT_EQ(skip_first_batches(*loader, 3)->length(), 0);
  const auto none = skip_first_batches(*loader, 4);
  EXPECT_NE(message_of<InvalidArgument>([&] { static_cast<void>(none->length()); }).find("at most 3"),
            std::string::npos);
  EXPECT_EQ(drain_loader(*none), Batches{});
  EXPECT_EQ(drain_loader(*skip_first_batches(*loader, -2)), (Batches{{0, 1}, {2, 3}, {4}}));
}

TEST(DATA_107, TheSameForAStream) {
  const DataLoader loader(std::make_shared<Count>(5, /*sized=*/true), {.batch_size = 2});
  EXPECT_EQ(skip_first_batches(loader, 1).length(), 2);
  EXPECT_EQ(skip_first_batches(loader, 3).length(), 0);
  const auto none = skip_first_batches(loader, 4);
  EXPECT_THROW(static_cast<void>(none.length()), InvalidArgument);
  EXPECT_EQ(drain_loader(none), Batches{});
}

TEST(DATA_108, ADispatcherSkipsStepsForEveryKindOfDataset) {
  for (const bool iterable : {false, true}) {
    run_thread_ranks(2, [iterable] {
      GradientState state;
      const DataLoaderOptions options{.batch_size = 2};
      const auto loader =
          dispatched(iterable ? DataLoader(std::make_shared<Count>(12), options) : DataLoader(Ids{12}, options), state);
      const auto skipped = skip_first_batches(*loader, 1);
      const auto right = is_rank_0() ? Batches{{4, 5}, {8, 9}} : Batches{{6, 7}, {10, 11}};
      for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(drain_loader(*skipped), right);
      if (!iterable) EXPECT_EQ(skipped->length(), 2);
    });
  }
}

// The rows that fill the last step are the data's first ones (DATA-083), which only a pass without a skip hands out.
TEST(DATA_108, TheLastStepIsFilledAsInAWholePass) {
  for (const bool iterable : {false, true}) {
    for (const std::int64_t num_skipped : {1, 2}) {
      run_thread_ranks(2, [iterable, num_skipped] {
        GradientState state;
        const auto loader = dispatched(
            iterable ? DataLoader(std::make_shared<Count>(5)) : DataLoader(Ids{5}, {.batch_size = 1}), state);
        Batches right = is_rank_0() ? Batches{{2}, {4}} : Batches{{3}, {0}};
        right.erase(right.begin(), right.begin() + num_skipped - 1);
        EXPECT_EQ(drain_loader(*skip_first_batches(*loader, num_skipped)), right);
      });
    }
  }
}

TEST(DATA_109, AStreamIsSkippedAgainAtEveryPass) {
  GradientState state;
  const auto stream = std::make_shared<Count>(6);
  const auto loader = prepare_data_loader(DataLoader(stream, {.batch_size = 2}), {}, state);
  const auto skipped = skip_first_batches(*loader, 1);
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(drain_loader(*skipped), (Batches{{2, 3}, {4, 5}}));
  EXPECT_EQ(stream->num_reads, 12);  // what is skipped of a stream is read
}

TEST(DATA_109, APlainLoaderStaysAPlainLoader) {
  const DataLoader map(Ids{6}, {.batch_size = 2});
  const auto skipped = skip_first_batches(map, 1);
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(drain_loader(skipped), (Batches{{2, 3}, {4, 5}}));
  EXPECT_NE(std::dynamic_pointer_cast<SkipBatchSampler>(skipped.batch_sampler()), nullptr);
  const DataLoader stream(std::make_shared<Count>(6), {.batch_size = 2});
  const auto skipped_stream = skip_first_batches(stream, 1);
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(drain_loader(skipped_stream), (Batches{{2, 3}, {4, 5}}));
  const auto skipped_twice = skip_first_batches(skipped_stream, 1);
  EXPECT_EQ(drain_loader(skipped_twice), (Batches{{4, 5}}));
  EXPECT_THROW(skip_first_batches(DataLoader(Ids{2}, {.batch_size = std::nullopt}), 1), TypeError);
}

TEST(DATA_038, ASkipSamplerCountsTheWholePassToo) {
  const SkipBatchSampler skipping(std::make_shared<test::ListBatches>(Batches{{0}, {1}, {2}}), {.num_batches = 2});
  EXPECT_EQ(skipping.length(), 1);
  EXPECT_EQ(skipping.total_length(), 3);
}

TEST(CaseE1, SkippingMayBeForTheFirstEpochAlone) {
  const DataLoader plain(Ids{20}, {.batch_size = 2});
  const auto lengths = [](auto& loader) {
    return std::vector<std::size_t>{drain_loader(loader).size(), drain_loader(loader).size()};
  };
  const auto every = skip_first_batches(plain, 3);
  EXPECT_EQ(lengths(every), (std::vector<std::size_t>{7, 7}));
  const auto once = skip_first_batches(plain, 3, /*every_epoch=*/false);
  EXPECT_EQ(lengths(once), (std::vector<std::size_t>{7, 10}));
  GradientState state;
  const auto prepared_once = skip_first_batches(*prepare_data_loader(plain, {}, state), 3, /*every_epoch=*/false);
  EXPECT_EQ(prepared_once->length(), 7);
  EXPECT_EQ(head(*prepared_once, 7).front(), (Indices{6, 7}));  // left in the last body: not exhausted
  EXPECT_EQ(lengths(*prepared_once), (std::vector<std::size_t>{7, 10}));
  EXPECT_EQ(prepared_once->length(), 10);
  const DataLoader stream(std::make_shared<Count>(20), {.batch_size = 2});
  const auto stream_once = skip_first_batches(stream, 3, /*every_epoch=*/false);
  EXPECT_EQ(lengths(stream_once), (std::vector<std::size_t>{7, 10}));
}

TEST(DATA_110, WithoutTheOptionThereIsNoState) {
  GradientState state;
  const auto loader = prepared(4, 2, {}, state);
  const auto message = message_of<AttributeError>([&] { static_cast<void>(loader->state_dict()); });
  EXPECT_NE(message.find("use_stateful_dataloader"), std::string::npos) << message;
  EXPECT_THROW(loader->load_state_dict(Value::dict({})), AttributeError);
  EXPECT_EQ(prepared(4, 2, {}, state, {.use_stateful_dataloader = true})->state_dict()["_num_yielded"], Value(0));
}

const PrepareOptions kStateful{.use_stateful_dataloader = true};

TEST(DATA_111, AStateTakenAfterKBatchesGoesOnAtBatchKAndThePassAfterIsWhole) {
  for (int rank = 0; rank < 2; ++rank) {
    const World world{.rank = rank, .size = 2};
    GradientState state;
    const auto before = prepared(22, 2, world, state, kStateful);
    const auto whole = drain_loader(*prepared(22, 2, world, state));
    ASSERT_EQ(head(*before, 3).size(), 3U);
    const auto saved = before->state_dict();
    EXPECT_EQ(saved["_num_yielded"], Value(3));
    EXPECT_EQ(saved["_iterator_finished"], Value(false));
    const auto after = prepared(22, 2, world, state, kStateful);
    after->load_state_dict(saved);
    EXPECT_EQ(drain_loader(*after), Batches(whole.begin() + 3, whole.end()));
    EXPECT_EQ(drain_loader(*after), whole);
    if (rank == 0) EXPECT_EQ(whole[3], (Indices{12, 13}));
  }
}

TEST(DATA_111, AFinishedPassIsFollowedByTheNextOne) {
  GradientState state;
  const auto shuffled = [&] {
    return prepare_data_loader(DataLoader(Ids{6}, {.batch_size = 2, .shuffle = true}), {}, state,
                               {.use_seedable_sampler = true, .data_seed = 1, .use_stateful_dataloader = true});
  };
  const auto before = shuffled();
  std::vector<Value> states;
  Batches second;
  for (const auto& batch : *before) states.push_back((static_cast<void>(batch), before->state_dict()));
  second = drain_loader(*before);
  EXPECT_EQ(states[1]["_iterator_finished"], Value(false));
  EXPECT_EQ(states[2]["_iterator_finished"], Value(true));
  const auto after = shuffled();
  after->load_state_dict(states[2]);
  EXPECT_EQ(after->iteration(), 1);
  EXPECT_EQ(drain_loader(*after), second);
}

TEST(DATA_111, ASavedPassIsTakenUpAgainAfterBeingTakenUp) {
  GradientState state;
  const auto first = prepared(8, 1, {}, state, kStateful);
  head(*first, 2);
  const auto second = prepared(8, 1, {}, state, kStateful);
  second->load_state_dict(first->state_dict());
  EXPECT_EQ(head(*second, 3), (Batches{{2}, {3}, {4}}));
  const auto third = prepared(8, 1, {}, state, kStateful);
  third->load_state_dict(second->state_dict());
  EXPECT_EQ(drain_loader(*third), (Batches{{5}, {6}, {7}}));
}

TEST(DATA_111, APlaceThatIsNoneIsRefused) {
  GradientState state;
  const auto loader = prepared(8, 1, {}, state, kStateful);
  const auto whole = loader->state_dict();
  for (const auto* name : {"_num_yielded", "samples", "iteration"}) {
    auto negative = whole;
    negative.set(name, -1);
    const auto text = message_of<InvalidArgument>([&] { loader->load_state_dict(negative); });
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
  EXPECT_EQ(loader->state_dict(), whole);
}

// The order of a shuffle without a seed of its own is taken up too (case E3).
TEST(CaseE3, AShuffledPassGoesOnWithTheItemsThatAreLeft) {
  for (const int world_size : {1, 2}) {
    GradientState state;
    const auto shuffled = [&](std::int64_t seed) {
      const auto generator = random::make_generator(seed);
      return prepare_data_loader(DataLoader(Ids{64}, {.batch_size = 4, .shuffle = true, .generator = generator}),
                                 {.rank = 0, .size = world_size}, state, kStateful);
    };
    const auto before = shuffled(1);
    drain_loader(*before);
    const auto second = head(*before, 5);
    const auto saved = before->state_dict();
    auto all = second;
    const auto after = shuffled(2);
    after->load_state_dict(saved);
    for (auto& batch : drain_loader(*after)) all.push_back(batch);
    const auto once = shuffled(1);
    drain_loader(*once);
    EXPECT_EQ(all, drain_loader(*once));
  }
}

TEST(DATA_112, Rank0OfADispatcherCountsRawBatchesAndTheOthersNone) {
  for (const bool iterable : {false, true}) {
    run_thread_ranks(2, [iterable] {
      GradientState state;
      const auto make = [&] {
        const DataLoaderOptions options{.batch_size = 2};
        return dispatched(iterable ? DataLoader(std::make_shared<Count>(12), options) : DataLoader(Ids{12}, options),
                          state, kStateful);
      };
      const auto before = make();
      head(*before, 2);
      EXPECT_EQ(before->state_dict()["_num_yielded"], Value(is_rank_0() ? 4 : 0));
      const auto after = make();
      after->load_state_dict(before->state_dict());
      EXPECT_EQ(drain_loader(*after), (is_rank_0() ? Batches{{8, 9}} : Batches{{10, 11}}));
      EXPECT_EQ(drain_loader(*after).size(), 3U);
    });
  }
}

}  // namespace
}  // namespace lockstep::data
