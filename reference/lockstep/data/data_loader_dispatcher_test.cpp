#include "lockstep/data/data_loader_dispatcher.h"

#include <ATen/Functions.h>

#include <atomic>

#include "lockstep/data/data_testing.h"
#include "lockstep/data/prepare_data_loader.h"
#include "lockstep/data/seedable_sampler.h"
#include "lockstep/state/partial_state.h"
#include "run_ranks.h"

namespace lockstep::data {
namespace {

using state::GradientState;
using test::Batches;
using test::Count;
using test::drain_loader;
using test::Indices;
using Ranks = std::vector<Batches>;
using lockstep::test::run_thread_ranks;

/// Item i is the number i; counts how often it is asked.
struct CountedIds {
  std::size_t count;
  std::shared_ptr<std::atomic<int>> reads = std::make_shared<std::atomic<int>>(0);
  [[nodiscard]] std::size_t size() const { return count; }
  [[nodiscard]] at::Tensor get(std::size_t i) const {
    ++*reads;
    return test::id(i);
  }
};

World world_of_rank() {
  const state::PartialState process;
  return {.rank = process.process_index(), .size = process.num_processes()};
}

/// A dispatcher on the ranks that call this.
std::shared_ptr<DataLoaderDispatcher> dispatcher(DataLoader loader, GradientState& state,
                                                 const DataLoaderDispatcherOptions& options = {}) {
  return std::make_shared<DataLoaderDispatcher>(std::move(loader), state::PartialState().world_group(), state, options);
}

/// What each of `w` ranks gets in one pass.
Ranks passes(int w, const std::function<DataLoader()>& make, const DataLoaderDispatcherOptions& options = {}) {
  Ranks ranks(static_cast<std::size_t>(w));
  run_thread_ranks(w, [&] {
    GradientState state;
    ranks[static_cast<std::size_t>(world_of_rank().rank)] = drain_loader(*dispatcher(make(), state, options));
  });
  return ranks;
}

std::function<DataLoader()> ids(std::size_t n, std::int64_t b, bool drop_last = false) {
  return [=] { return DataLoader(test::Ids{n}, {.batch_size = b, .drop_last = drop_last}); };
}

TEST(DATA_080, OnlyRank0Reads) {
  run_thread_ranks(2, [] {
    GradientState state;
    const CountedIds dataset{.count = 6};
    drain_loader(*dispatcher(DataLoader(dataset, {.batch_size = 1}), state));
    EXPECT_EQ(*dataset.reads, world_of_rank().rank == 0 ? 6 : 0);
    const auto stream = std::make_shared<Count>(6);
    drain_loader(*dispatcher(DataLoader(stream, {.batch_size = 1}), state));
    EXPECT_EQ(stream->num_reads, world_of_rank().rank == 0 ? 6 : 0);
  });
}

TEST(DATA_081, AStepIsOneBatchForEveryRankOrOneThatIsSplit) {
  EXPECT_EQ(passes(2, ids(8, 2)), (Ranks{{{0, 1}, {4, 5}}, {{2, 3}, {6, 7}}}));
  EXPECT_EQ(passes(2, ids(8, 4), {.split_batches = true}), (Ranks{{{0, 1}, {4, 5}}, {{2, 3}, {6, 7}}}));
}

TEST(DATA_081, StructureAndDtypesArriveAsTheyWere) {
  run_thread_ranks(2, [] {
    struct Nested {
      [[nodiscard]] std::size_t size() const { return 2; }
      [[nodiscard]] Value get(std::size_t i) const {
        return Value::dict({{"x", at::full({3}, static_cast<double>(i), at::kFloat)},
                            {"pair", Value::tuple({test::id(i), at::full({}, true, at::kBool)})}});
      }
    };
    GradientState state;
    const auto loader = dispatcher(DataLoader(Nested{}, {.batch_size = 1}), state);
    for (const auto& batch : *loader) {
      const auto rank = static_cast<double>(world_of_rank().rank);
      EXPECT_EQ(batch["x"], Value(at::full({1, 3}, rank, at::kFloat)));
      EXPECT_TRUE(batch["pair"].is_tuple());
      EXPECT_EQ(batch["pair"][1], Value(at::full({1}, true, at::kBool)));
    }
  });
}

TEST(DATA_082, EachRankGetsConsecutiveRows) {
  EXPECT_EQ(passes(3, ids(12, 4)), (Ranks{{{0, 1, 2, 3}}, {{4, 5, 6, 7}}, {{8, 9, 10, 11}}}));
}

TEST(DATA_083, TheLastStepIsFilledWithTheFirstRows) {
  const auto ranks = passes(3, ids(20, 4));
  EXPECT_EQ(ranks[0][1], (Indices{12, 13, 14}));
  EXPECT_EQ(ranks[1][1], (Indices{15, 16, 17}));
  EXPECT_EQ(ranks[2][1], (Indices{18, 19, 0}));
}

TEST(DATA_084, TheLastBatchHasItsShareOfTheRowsNotABatchSize) {
  const auto ranks = passes(2, ids(22, 4), {.split_batches = true});
  EXPECT_EQ(ranks[0].back(), (Indices{20}));
  EXPECT_EQ(ranks[1].back(), (Indices{21}));
}

TEST(DATA_085, CaseA3DataSmallerThanTheWorldIsRepeatedForEveryRank) {
  EXPECT_EQ(passes(3, ids(1, 4)), (Ranks{{{0}}, {{0}}, {{0}}}));
  EXPECT_EQ(passes(4, ids(1, 4)), (Ranks{{{0}}, {{0}}, {{0}}, {{0}}}));
  EXPECT_EQ(passes(5, ids(2, 1)), (Ranks{{{0}}, {{1}}, {{0}}, {{1}}, {{0}}}));
}

TEST(DATA_086, DropLastLeavesOutAStepThatLacksBatches) {
  run_thread_ranks(3, [] {
    GradientState state;
    const auto loader = dispatcher(ids(20, 4, /*drop_last=*/true)(), state);
    Batches batches;
    for (const auto& batch : *loader) {
      batches.push_back(test::to_indices(batch));
      EXPECT_TRUE(state.end_of_dataloader());
      EXPECT_EQ(state.remainder(), 12);
    }
    const auto first = 4 * world_of_rank().rank;
    EXPECT_EQ(batches, (Batches{{first, first + 1, first + 2, first + 3}}));
  });
}

TEST(DATA_087, TheRemainderIsKnownInTheLastStepOnly) {
  for (const std::size_t n : {7, 8}) {
    run_thread_ranks(2, [n] {
      GradientState state;
      const auto loader = dispatcher(ids(n, 2)(), state);
      std::vector<std::pair<bool, std::int64_t>> flags;
      for (const auto& batch : *loader) {
        static_cast<void>(batch);
        flags.emplace_back(state.end_of_dataloader(), state.remainder());
      }
      EXPECT_EQ(flags, (std::vector<std::pair<bool, std::int64_t>>{{false, -1}, {true, n == 7 ? 3 : 4}}));
    });
  }
}

TEST(DATA_088, CountsSteps) {
  run_thread_ranks(2, [] {
    GradientState state;
    EXPECT_EQ(dispatcher(ids(20, 4)(), state, {.split_batches = true})->length(), 5);  // case A9
    EXPECT_EQ(dispatcher(ids(20, 4)(), state)->length(), 3);
    EXPECT_EQ(dispatcher(ids(20, 4, /*drop_last=*/true)(), state)->length(), 2);
    const auto unsized = dispatcher(DataLoader(std::make_shared<Count>(5), {.batch_size = 2}), state);
    EXPECT_THROW(static_cast<void>(unsized->length()), TypeError);
  });
}

TEST(DATA_089, WithoutDataAPassIsEmpty) {
  EXPECT_EQ(passes(1, ids(0, 2)), Ranks{{}});
  EXPECT_EQ(passes(2, ids(0, 2)), (Ranks{{}, {}}));
  EXPECT_EQ(passes(2, ids(3, 2, /*drop_last=*/true)), (Ranks{{}, {}}));
  run_thread_ranks(2, [] {
    GradientState state;
    const auto loader = dispatcher(ids(0, 2)(), state);
    drain_loader(*loader);
    EXPECT_EQ(loader->iteration(), 0);
    EXPECT_FALSE(loader->end_of_dataloader());
    EXPECT_EQ(state.num_registrations(), 0U);
  });
}

TEST(DATA_090, RefusesABatchSizeThatTheRanksCannotSplit) {
  run_thread_ranks(2, [] {
    GradientState state;
    EXPECT_THROW(dispatcher(ids(5, 1)(), state, {.split_batches = true}), InvalidArgument);
    EXPECT_THROW(dispatcher(ids(5, 3)(), state, {.split_batches = true}), InvalidArgument);
  });
}

/// Row i has 1 + i % 3 elements: in batches of one they collate, and do not join.
struct Ragged {
  [[nodiscard]] std::size_t size() const { return 4; }
  [[nodiscard]] at::Tensor get(std::size_t i) const { return at::full({1 + static_cast<std::int64_t>(i % 3)}, 1.0); }
};
struct Text {
  [[nodiscard]] std::size_t size() const { return 4; }
  [[nodiscard]] Value get(std::size_t i) const { return Value::dict({{"id", test::id(i)}, {"s", "text"}}); }
};
struct Failing {
  [[nodiscard]] std::size_t size() const { return 4; }
  [[nodiscard]] at::Tensor get(std::size_t i) const {
    if (i == 3) throw std::out_of_range("no third item");
    return test::id(i);
  }
};

/// The kind and message with which each rank's pass ends.
template <typename Source>
std::vector<std::pair<std::string, std::string>> failures(int w, DataLoaderDispatcherOptions options = {},
                                                          std::int64_t b = 1) {
  std::vector<std::pair<std::string, std::string>> ends(static_cast<std::size_t>(w));
  run_thread_ranks(w, [&] {
    GradientState state;
    const auto loader = dispatcher(DataLoader(Source{}, {.batch_size = b}), state, options);
    try {
      for (const auto& batch : *loader) static_cast<void>(batch);
    } catch (const Error& error) {
      ends[static_cast<std::size_t>(world_of_rank().rank)] = {std::string(error.kind()), error.what()};
    }
  });
  return ends;
}

TEST(DATA_091, BatchesThatDoNotJoinAreAnErrorThatSaysWhatToDo) {
  const auto ends = failures<Ragged>(2);
  EXPECT_EQ(ends[0].first, "RuntimeError");
  EXPECT_NE(ends[0].second.find("split_batches=true"), std::string::npos) << ends[0].second;
  EXPECT_NE(ends[0].second.find("dispatch_batches=false"), std::string::npos);
  EXPECT_EQ(failures<Ragged>(1)[0].first, "");  // nothing to join
}

TEST(DATA_092, AFailureOnRank0IsOneOnEveryRank) {
  for (const auto& [kind, message] : failures<Ragged>(3)) EXPECT_EQ(kind, "RuntimeError") << message;
  for (const auto& [kind, message] : failures<Text>(2)) EXPECT_EQ(kind, "TypeError") << message;
  const auto ends = failures<Failing>(3);
  for (const auto& [kind, message] : ends) {
    EXPECT_EQ(kind, "IndexError");
    EXPECT_NE(message.find("no third item"), std::string::npos) << message;
  }
  EXPECT_NE(ends[2].second.find("rank 0"), std::string::npos) << ends[2].second;
}

TEST(DATA_092, SoIsWhatIsNoExceptionAndWhatCannotBeSent) {
  for (const bool sparse : {false, true}) {
    std::vector<std::string> kinds(2);
    run_thread_ranks(2, [&] {
      GradientState state;
      const auto collate = [sparse](const std::vector<Value>&) -> Value {
        if (!sparse) throw 7;
        return at::sparse_coo_tensor({2}, at::kFloat);  // has no strides to be made contiguous
      };
      const auto loader = dispatcher(DataLoader(test::Ids{2}, {.batch_size = 1, .collate = collate}), state);
      auto& kind = kinds[static_cast<std::size_t>(world_of_rank().rank)];
      try {
        for (const auto& batch : *loader) static_cast<void>(batch);
        kind = "none";
      } catch (const std::exception& error) {
        kind = kind_of(error);
      } catch (int) {
        kind = "int";
      }
    });
    EXPECT_EQ(kinds, (sparse ? std::vector<std::string>{"RuntimeError", "RuntimeError"}
                             : std::vector<std::string>{"int", "RuntimeError"}));
  }
}

TEST(DATA_093, LeavesThatAreNoTensorsAreRefusedOnSeveralRanks) {
  for (const auto& [kind, message] : failures<Text>(2, {.split_batches = true}, 2)) {
    EXPECT_EQ(kind, "TypeError");
    EXPECT_NE(message.find("s[0]"), std::string::npos) << message;
  }
  GradientState state;
  DataLoaderDispatcher alone(DataLoader(Text{}, {.batch_size = 2}), {}, state);
  for (const auto& batch : alone) EXPECT_EQ(batch["s"], Value::list({"text", "text"}));
}

TEST(DATA_094, ACustomSliceFunctionIsAskedForTheHeadAndForEachStep) {
  std::vector<std::vector<std::vector<std::int64_t>>> calls(2);
  run_thread_ranks(2, [&] {
    GradientState state;
    auto& mine = calls[static_cast<std::size_t>(world_of_rank().rank)];
    const auto slice = [&mine](const Value& batch, std::int64_t begin, std::int64_t end, World world) {
      mine.push_back({begin, end, world.rank, world.size});
      return Value(batch.tensor().slice(0, begin, end));
    };
    drain_loader(*dispatcher(ids(5, 2)(), state, {.slice = slice}));
  });
  EXPECT_EQ(calls[1], (Batches{{0, 2, 1, 2}, {2, 4, 1, 2}, {1, 2, 1, 2}}));
  EXPECT_EQ(calls[0], (Batches{{0, 2, 0, 2}, {0, 2, 0, 2}, {0, 1, 0, 2}}));
}

TEST(DATA_095, TensorAndContextParallelRanksGetTheSameRows) {
  run_thread_ranks(2, [] {
    for (const auto& mesh : {MeshSizes{.tp = 2}, MeshSizes{.cp = 2}}) {
      GradientState state;
      const state::PartialState process;
      const PrepareOptions options{
          .dispatch_batches = true, .device = at::kCPU, .mesh = mesh, .group = process.world_group()};
      const auto loader = prepare_data_loader(ids(5, 2)(), world_of_rank(), state, options);
      EXPECT_EQ(drain_loader(*loader), (Batches{{0, 1}, {2, 3}, {4}}));
      EXPECT_EQ(loader->length(), 3);
    }
  });
}

TEST(DATA_095, DataParallelRanksBesideThemAreRefused) {
  GradientState state;
  for (const auto& mesh : {MeshSizes{.dp_shard = 2, .tp = 2}, MeshSizes{.dp_replicate = 2, .cp = 2}}) {
    const PrepareOptions options{.dispatch_batches = true, .device = at::kCPU, .mesh = mesh};
    EXPECT_THROW(static_cast<void>(prepare_data_loader(ids(4, 1)(), {.rank = 0, .size = 4}, state, options)),
                 InvalidArgument);
  }
}

TEST(DATA_096, KnowsTheTotalBatchSize) {
  run_thread_ranks(2, [] {
    GradientState state;
    EXPECT_EQ(dispatcher(ids(8, 4)(), state)->total_batch_size(), 8);
    EXPECT_EQ(dispatcher(ids(8, 4)(), state, {.split_batches = true})->total_batch_size(), 4);
  });
}

TEST(DATA_103, TheEpochGoesToTheSamplerOrElseToTheDataset) {
  struct Told {
    std::shared_ptr<Indices> epochs = std::make_shared<Indices>();
    [[nodiscard]] std::size_t size() const { return 4; }
    [[nodiscard]] at::Tensor get(std::size_t i) const { return test::id(i); }
    void set_epoch(std::int64_t epoch) const { epochs->push_back(epoch); }
  };
  GradientState state;
  const Told dataset;
  const auto sampler = std::make_shared<SeedableRandomSampler>(4, 42);
  DataLoaderDispatcher(DataLoader(dataset, {.batch_size = 2, .sampler = sampler}), {}, state).set_epoch(3);
  EXPECT_EQ(sampler->epoch(), 3);
  EXPECT_TRUE(dataset.epochs->empty());
  DataLoaderDispatcher(DataLoader(dataset, {.batch_size = 2}), {}, state).set_epoch(4);
  EXPECT_EQ(*dataset.epochs, (Indices{4}));
}

TEST(DataLoaderDispatcher, ReportsTheIndicesAndThePaddingOfEachRank) {
  std::vector<std::vector<std::pair<Indices, std::int64_t>>> reported(2);
  run_thread_ranks(2, [&] {
    GradientState state;
    auto& mine = reported[static_cast<std::size_t>(world_of_rank().rank)];
    const auto note = [&mine](const BatchInfo& batch) {
      mine.emplace_back(batch.items.indices, batch.items.num_padding);
    };
    drain_loader(*dispatcher(ids(7, 2)(), state, {.on_batch = note}));
  });
  using Reports = std::vector<std::pair<Indices, std::int64_t>>;
  EXPECT_EQ(reported[0], (Reports{{{0, 1}, 0}, {{4, 5}, 0}}));
  EXPECT_EQ(reported[1], (Reports{{{2, 3}, 0}, {{6, 0}, 1}}));
}

TEST(DATA_016, RanksOfOtherAxesReadAsOne) {
  const MeshSizes mesh{.dp_shard = 2, .tp = 3};
  std::vector<int> ranks;
  for (int rank = 0; rank < 6; ++rank) {
    const auto world = data_parallel_world({.rank = rank, .size = 6}, mesh);
    EXPECT_EQ(world.size, 2);
    ranks.push_back(world.rank);
  }
  EXPECT_EQ(ranks, (std::vector<int>{0, 0, 0, 1, 1, 1}));
  EXPECT_THROW(data_parallel_world({.rank = 0, .size = 4}, mesh), InvalidArgument);
  EXPECT_EQ(data_parallel_world({.rank = 5, .size = 8}, {.dp_replicate = 2, .cp = 4}), (World{.rank = 1, .size = 2}));
  EXPECT_EQ(data_parallel_world_of_deepspeed({.rank = 3, .size = 4}, 2), (World{.rank = 1, .size = 2}));
}

TEST(DATA_016, TheMeshDecidesWhoReadsWhat) {
  GradientState state;
  const auto loader =
      prepare_data_loader(ids(8, 2)(), {.rank = 3, .size = 4}, state, {.mesh = MeshSizes{.dp_shard = 2, .tp = 2}});
  EXPECT_EQ(drain_loader(*loader), (Batches{{2, 3}, {6, 7}}));
}

}  // namespace
}  // namespace lockstep::data
