// How an Accelerator prepares loaders: its options, dispatching, skipping, and metrics over all kinds of loaders.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/data/data_loader_dispatcher.h"
#include "lockstep/data/data_loader_shard.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/random/generator.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using data::test::Batches;
using data::test::Count;
using data::test::drain_loader;
using data::test::Ids;
using data::test::Indices;
using data::test::to_indices;
using state::as_rank;
using test::message_of;
using test::run_thread_ranks;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

data::DataLoader ids(std::size_t n, std::int64_t b) { return data::DataLoader(Ids{n}, {.batch_size = b}); }
data::DataLoader stream(std::int64_t n, std::int64_t b) {
  return data::DataLoader(std::make_shared<Count>(n), {.batch_size = b});
}

bool is_dispatcher(const std::shared_ptr<data::PreparedDataLoader>& loader) {
  return std::dynamic_pointer_cast<data::DataLoaderDispatcher>(loader) != nullptr;
}

TEST(DATA_001, OptionsAndTheirDefaults) {
  const config::DataLoaderConfiguration standard;
  EXPECT_FALSE(standard.split_batches);
  EXPECT_EQ(standard.dispatch_batches, std::nullopt);
  EXPECT_TRUE(standard.even_batches);
  EXPECT_FALSE(standard.use_seedable_sampler);
  EXPECT_EQ(standard.data_seed, std::nullopt);
  EXPECT_FALSE(standard.non_blocking);
  EXPECT_FALSE(standard.use_stateful_dataloader);
}

TEST(DATA_002, AnOptionHasItsEffectInBothPlaces) {
  as_rank(kCpu, [] {
    const std::vector<AcceleratorOptions> both = {
        {.split_batches = true, .dispatch_batches = true, .even_batches = false},
        {.dataloader_config = {.split_batches = true, .dispatch_batches = true, .even_batches = false}}};
    for (const auto& options : both) {
      Accelerator accelerator(options);
      EXPECT_TRUE(accelerator.split_batches());
      EXPECT_FALSE(accelerator.even_batches());
      EXPECT_TRUE(is_dispatcher(accelerator.prepare(ids(4, 2))));
    }
  });
}

TEST(DATA_002, DifferentValuesInBothPlacesAreRefused) {
  as_rank(kCpu, [] {
    const auto message = message_of<InvalidArgument>(
        [] { Accelerator({.dispatch_batches = true, .dataloader_config = {.dispatch_batches = false}}); });
    EXPECT_NE(message.find("dispatch_batches"), std::string::npos) << message;
    EXPECT_NE(message.find("true in the constructor and false"), std::string::npos) << message;
    EXPECT_THROW(Accelerator({.split_batches = false, .dataloader_config = {.split_batches = true}}), InvalidArgument);
    EXPECT_THROW(Accelerator({.even_batches = true, .dataloader_config = {.even_batches = false}}), InvalidArgument);
    Accelerator agreeing({.split_batches = true, .dataloader_config = {.split_batches = true}});
    EXPECT_TRUE(agreeing.split_batches());
  });
}

TEST(DATA_003, SplitBatchesOnTheConstructorTakesEffect) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.split_batches = true});
    EXPECT_TRUE(accelerator.split_batches());
    EXPECT_EQ(drain_loader(*accelerator.prepare(ids(4, 2))).front(), (Indices{accelerator.process_index()}));
  });
}

TEST(DATA_004, StreamsAreDispatchedIfBatchesArePutOnTheDevice) {
  as_rank(kCpu, [] {
    Accelerator placing;
    EXPECT_TRUE(is_dispatcher(placing.prepare(stream(4, 2))));
    EXPECT_FALSE(is_dispatcher(placing.prepare(ids(4, 2))));
    Accelerator leaving({.device_placement = false});
    EXPECT_FALSE(is_dispatcher(leaving.prepare(stream(4, 2))));
    Accelerator never({.dispatch_batches = false});
    EXPECT_FALSE(is_dispatcher(never.prepare(stream(4, 2))));
  });
}

TEST(DATA_005, DispatchingNeedsADevice) {
  as_rank(kCpu, [] {
    Accelerator accelerator({.device_placement = false, .dispatch_batches = true});
    const auto message = message_of<InvalidArgument>([&] { accelerator.prepare(ids(4, 2)); });
    EXPECT_NE(message.find("dispatch_batches"), std::string::npos) << message;
    EXPECT_NE(message.find("put_on_device"), std::string::npos) << message;
  });
}

TEST(DATA_006, DispatchingIsForAnyNumberOfRanks) {
  for (const int world : {1, 2}) {
    run_thread_ranks(world, [] {
      Accelerator accelerator({.dispatch_batches = true});
      EXPECT_TRUE(is_dispatcher(accelerator.prepare(ids(4, 2))));
    });
  }
}

TEST(DATA_015, APreparedLoaderIsItself) {
  as_rank(kCpu, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(4, 2));
    EXPECT_EQ(accelerator.prepare(loader), loader);
    for (const auto& batch : *accelerator.prepare(loader)) {
      static_cast<void>(batch);
      EXPECT_EQ(accelerator.gradient_state().num_registrations(), 1U);
    }
  });
}

TEST(DATA_094, ASliceFunctionReachesTheDispatcher) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.dispatch_batches = true});
    int calls = 0;
    const auto loader = accelerator.prepare_data_loader(
        ids(4, 2),
        {.slice_fn_for_dispatch = [&calls](const Value& batch, std::int64_t begin, std::int64_t end, World /*world*/) {
          ++calls;
          return Value(batch.tensor().slice(0, begin, end) * 10);
        }});
    EXPECT_EQ(drain_loader(*loader), (accelerator.is_main_process() ? Batches{{0, 10}} : Batches{{20, 30}}));
    EXPECT_EQ(calls, 2);
  });
}

TEST(DATA_105, TheAcceleratorSkipsBatchesOfBothKindsOfLoader) {
  as_rank(kCpu, [] {
    Accelerator accelerator;
    EXPECT_EQ(drain_loader(*accelerator.skip_first_batches(accelerator.prepare(ids(5, 2)), 1)), (Batches{{2, 3}, {4}}));
    const auto plain = accelerator.skip_first_batches(ids(5, 2), 2);
    EXPECT_EQ(drain_loader(plain), (Batches{{4}}));
  });
}

TEST(DATA_111, TheConfigurationMakesLoadersStateful) {
  as_rank(kCpu, [] {
    Accelerator accelerator({.dataloader_config = {.use_stateful_dataloader = true}});
    const auto loader = accelerator.prepare(ids(5, 2));
    EXPECT_EQ(loader->state_dict()["_iterator_finished"], Value(false));
  });
}

TEST(RNG_009, ASamplersGeneratorIsAlwaysSynchronised) {
  std::vector<Indices> seen(2);
  run_thread_ranks(2, [&] {
    Accelerator accelerator({.rng_types = {"torch"}});
    const auto rank = accelerator.process_index();
    const auto own = random::make_generator(50 + rank);  // the ranks' seeds differ
    const auto loader =
        accelerator.prepare(data::DataLoader(Ids{6}, {.batch_size = 3, .shuffle = true, .generator = own}));
    for (const Value& batch : *loader) seen[static_cast<std::size_t>(rank)] = to_indices(batch);
  });
  std::set<std::int64_t> all(seen[0].begin(), seen[0].end());
  all.insert(seen[1].begin(), seen[1].end());
  EXPECT_EQ(all.size(), 6U);
}

Indices numbers_below(std::int64_t n) {
  Indices numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

template <typename Loader>
Indices metrics_of(Accelerator& accelerator, Loader& loader) {
  Indices all;
  for (const Value& batch : *loader) {
    const auto step = to_indices(accelerator.gather_for_metrics(batch));
    all.insert(all.end(), step.begin(), step.end());
  }
  return all;
}

TEST(DATA_115, MetricsAreTheDatasetInOrderWhateverTheLoader) {
  for (const int world : {2, 3}) {
    run_thread_ranks(world, [world] {
      Accelerator sharing;
      Accelerator splitting({.split_batches = true});
      Accelerator dispatching({.dispatch_batches = true});
      for (const std::int64_t n : {0, 1, 2, 5, 12, 13}) {
        const auto size = static_cast<std::size_t>(n);
        const auto shard = sharing.prepare(ids(size, 2));
        EXPECT_EQ(metrics_of(sharing, shard), numbers_below(n));
        const auto split = splitting.prepare(ids(size, 2L * world));
        EXPECT_EQ(metrics_of(splitting, split), numbers_below(n));
        const auto dispatched = dispatching.prepare(ids(size, 2));
        EXPECT_EQ(metrics_of(dispatching, dispatched), numbers_below(n));
        const auto streamed = dispatching.prepare(stream(n, 2));
        EXPECT_EQ(metrics_of(dispatching, streamed), numbers_below(n));
      }
    });
  }
}

TEST(DATA_116, WhatFillsUpAStreamThatAllReadStays) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.dispatch_batches = false});
    const auto loader = accelerator.prepare(stream(5, 2));
    EXPECT_EQ(metrics_of(accelerator, loader), (Indices{0, 1, 2, 3, 4, 0, 1, 2}));
  });
}

TEST(ACC_045, JoiningHasNoEffectOnTheCpuAndSaysSo) {
  testing::internal::CaptureStderr();
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(5, 1));
    const auto uneven = accelerator.join_uneven_inputs({.even_batches = false});
    EXPECT_EQ(drain_loader(*loader).size(), 3U);
  });
  EXPECT_NE(testing::internal::GetCapturedStderr().find("join_uneven_inputs"), std::string::npos);
  testing::internal::CaptureStderr();
  as_rank(kCpu, [] {
    Accelerator accelerator;
    const auto uneven = accelerator.join_uneven_inputs({.even_batches = false});
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(EvenBatchesScope, HoldsForLoadersOfWhichRanksReadTheirPartAndEndsWithAnErrorToo) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(5, 1));
    const auto dispatched = accelerator.prepare(stream(5, 1));
    const auto count = [&] { return drain_loader(*loader).size(); };
    try {
      const data::EvenBatchesScope uneven({loader, dispatched}, /*even_batches=*/false);
      EXPECT_EQ(uneven.num_untouched(), 1);
      EXPECT_EQ(count(), accelerator.is_main_process() ? 3U : 2U);
      EXPECT_EQ(drain_loader(*dispatched).size(), 3U);
      throw std::runtime_error("the loop failed");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(count(), 3U);
    }
  });
}

// ACC-046, accepted outcome: as for a dispatcher.
TEST(ACC_046, AStreamThatAllRanksReadIsLeftAsItIs) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.dispatch_batches = false});
    const auto loader = accelerator.prepare(stream(5, 1));
    const data::EvenBatchesScope uneven({loader}, /*even_batches=*/false);
    EXPECT_EQ(uneven.num_untouched(), 1);
    EXPECT_EQ(drain_loader(*loader).size(), 3U);
  });
}

TEST(CaseA3, MetricsOfOneDispatchedItemAreThatItem) {
  for (const int world : {3, 4}) {
    run_thread_ranks(world, [] {
      Accelerator accelerator({.dispatch_batches = true});
      const auto loader = accelerator.prepare(ids(1, 4));
      EXPECT_EQ(metrics_of(accelerator, loader), (Indices{0}));
    });
  }
}

TEST(CaseB5, EvaluatingInMidEpochLeavesTheTrainingGatherAlone) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto train = accelerator.prepare(ids(64, 4));
    const auto eval = accelerator.prepare(ids(10, 4));
    int step = 0;
    for (const Value& batch : *train) {
      EXPECT_EQ(to_indices(accelerator.gather_for_metrics(batch)).size(), 8U);
      if (++step % 3 != 0) continue;
      EXPECT_EQ(metrics_of(accelerator, eval), numbers_below(10));
      EXPECT_EQ(to_indices(accelerator.gather_for_metrics(batch)).size(), 8U);
    }
    EXPECT_EQ(step, 8);
  });
}

}  // namespace
}  // namespace lockstep
