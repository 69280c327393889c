// Failures from the field, as small inputs: who sees which samples, in which order, and how often.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/base/error.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/random/generator.h"
#include "lockstep/random/seeding.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using data::test::Batches;
using data::test::drain_loader;
using data::test::Ids;
using data::test::Indices;
using data::test::to_indices;
using state::as_rank;
using test::run_thread_ranks;
using Loader = std::shared_ptr<data::PreparedDataLoader>;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

data::DataLoader ids(std::size_t n, std::int64_t b) { return data::DataLoader(Ids{n}, {.batch_size = b}); }
data::DataLoader shuffled(std::size_t n, std::int64_t b, const at::Generator& generator = {}) {
  return data::DataLoader(Ids{n}, {.batch_size = b, .shuffle = true, .generator = generator});
}

Indices numbers_below(std::int64_t n) {
  Indices numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}
Indices sorted(Indices indices) {
  std::ranges::sort(indices);
  return indices;
}

/// What all ranks together take in each step of a pass, or of its first `num_steps`.
Indices taken_by_all(Accelerator& accelerator, const Loader& loader, int num_steps = -1) {
  Indices all;
  for (const Value& batch : *loader) {
    const auto step = to_indices(accelerator.gather(batch));
    all.insert(all.end(), step.begin(), step.end());
    if (--num_steps == 0) break;
  }
  return all;
}

TEST(CaseA9, ADispatchedLoaderThatSplitsCountsItsStepsOnEveryRank) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.split_batches = true, .dispatch_batches = true});
    const auto loader = accelerator.prepare(ids(20, 4));
    EXPECT_EQ(loader->length(), 5);
    EXPECT_EQ(drain_loader(*loader).size(), 5U);
  });
}

TEST(CaseA11, RanksThatSeededApartShuffleAlike) {
  for (const auto& [world, num_taken] : {std::pair(2, 8U), std::pair(3, 12U)}) {
    run_thread_ranks(world, [num_taken = num_taken] {
      Accelerator accelerator;
      const auto own = random::make_generator(100 + accelerator.process_index());
      const auto loader = accelerator.prepare(shuffled(8, 2, own));
      const auto taken = taken_by_all(accelerator, loader);
      EXPECT_EQ(taken.size(), num_taken);
      EXPECT_EQ(sorted({taken.begin(), taken.begin() + 8}), numbers_below(8));
    });
  }
}

TEST(CaseB7, WhatFillsUpTheTestSetIsFlaggedAndLeftOutOfItsMetrics) {
  run_thread_ranks(8, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(ids(499, 8));
    std::int64_t padding = 0;
    const auto subscription =
        accelerator.account().subscribe([&padding](const accounting::Stamp&, const accounting::Event& event) {
          if (const auto* batch = std::get_if<accounting::Batch>(&event)) padding += batch->padding;
        });
    Indices predictions;
    for (const Value& batch : *loader) {
      EXPECT_EQ(batch.tensor().size(0), 8);
      const auto step = to_indices(accelerator.gather_for_metrics(batch));
      predictions.insert(predictions.end(), step.begin(), step.end());
    }
    EXPECT_EQ(predictions, numbers_below(499));
    const auto all_padding = accelerator.reduce(at::full({1}, padding, at::kLong)).tensor().item<std::int64_t>();
    EXPECT_EQ(all_padding, 512 - 499);
  });
}

TEST(CaseB7, ASamplerThatPadsByItselfIsRefusedWithTheReason) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const World world{.rank = accelerator.process_index(), .size = 2};
    const data::DataLoader loader(Ids{499},
                                  {.batch_size = 8, .sampler = std::make_shared<data::DistributedSampler>(499, world)});
    EXPECT_THROW(accelerator.prepare(loader), InvalidArgument);
  });
}

/// The items of a shuffled pass of 64 in batches of 4 that is left after `num_steps` and taken up by another job.
struct Resumed {
  Indices before, after;
  [[nodiscard]] Indices all() const {
    auto both = before;
    both.insert(both.end(), after.begin(), after.end());
    return sorted(both);
  }
};

TEST(CaseE3, AShuffleOfTheGlobalGeneratorGoesOnWithTheExactRemainder) {
  as_rank(kCpu, [] {
    Resumed pass;
    Value saved;
    {
      random::set_seed(7);
      Accelerator accelerator({.dataloader_config = {.use_stateful_dataloader = true}});
      const auto loader = accelerator.prepare(shuffled(64, 4));
      pass.before = taken_by_all(accelerator, loader, 5);
      saved = loader->state_dict();
    }
    random::set_seed(8);  // what a restart finds the global generator at
    Accelerator accelerator({.dataloader_config = {.use_stateful_dataloader = true}});
    const auto loader = accelerator.prepare(shuffled(64, 4));
    loader->load_state_dict(saved);
    pass.after = taken_by_all(accelerator, loader);
    EXPECT_EQ(pass.before.size(), 20U);
    EXPECT_EQ(pass.after.size(), 44U);
    EXPECT_EQ(pass.all(), numbers_below(64));
  });
}

TEST(CaseE3, ASeedableShuffleIsSkippedToTheExactRemainder) {
  run_thread_ranks(2, [] {
    const auto prepare = [](Accelerator& accelerator) { return accelerator.prepare(shuffled(64, 2)); };
    const AcceleratorOptions seedable{.dataloader_config = {.use_seedable_sampler = true, .data_seed = 3}};
    Resumed pass;
    Accelerator before(seedable);
    pass.before = taken_by_all(before, prepare(before), 5);
    Accelerator after(seedable);
    pass.after = taken_by_all(after, after.skip_first_batches(prepare(after), 5));
    EXPECT_EQ(pass.before.size(), 20U);
    EXPECT_EQ(pass.all(), numbers_below(64));
  });
}

/// A pass of 64 in batches of 2 per rank, left by `world` ranks after `num_steps`: the items, and rank 0's state.
std::pair<Indices, Value> leave_pass(int world, int num_steps, const AcceleratorOptions& options) {
  std::pair<Indices, Value> left;
  run_thread_ranks(world, [&] {
    Accelerator accelerator(options);
    const auto loader = accelerator.prepare(ids(64, 2));
    const auto taken = taken_by_all(accelerator, loader, num_steps);
    if (accelerator.is_main_process()) left = {taken, loader->state_dict()};
  });
  return left;
}

Indices take_up_pass(int world, const Value& saved, const AcceleratorOptions& options) {
  Indices taken;
  run_thread_ranks(world, [&] {
    Accelerator accelerator(options);
    const auto loader = accelerator.prepare(ids(64, 2));
    loader->load_state_dict(saved);
    const auto mine = taken_by_all(accelerator, loader);
    if (accelerator.is_main_process()) taken = mine;
    const auto next = taken_by_all(accelerator, loader);
    EXPECT_EQ(Indices(next.begin(), next.begin() + 64), numbers_below(64)) << "the pass after it is whole";
  });
  return taken;
}

TEST(CaseE5, ThePlaceInAPassIsThatOfTheSamplesOnAnyNumberOfRanks) {
  for (const bool dispatch : {false, true}) {
    const AcceleratorOptions options{.dispatch_batches = dispatch,
                                     .dataloader_config = {.use_stateful_dataloader = true}};
    for (const auto& [saving, loading, num_steps] : {std::tuple(2, 4, 6), std::tuple(4, 2, 3), std::tuple(1, 3, 6)}) {
      auto [all, saved] = leave_pass(saving, num_steps, options);
      const auto rest = take_up_pass(loading, saved, options);
      all.insert(all.end(), rest.begin(), rest.end());
      all.resize(64);  // without what fills up the last step
      EXPECT_EQ(all, numbers_below(64)) << "from " << saving << " ranks to " << loading;
    }
  }
}

TEST(CaseE5, SamplesThatComeAgainAreReported) {
  const AcceleratorOptions options{.dataloader_config = {.use_stateful_dataloader = true}};
  const auto saved = leave_pass(/*world=*/2, /*num_steps=*/5, options).second;  // 20 samples; 4 ranks take 8 a step
  testing::internal::CaptureStderr();
  EXPECT_EQ(take_up_pass(/*world=*/4, saved, options).front(), 16);
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("left after 20 samples, where no step of 8 ends: 4 of them come again"), std::string::npos)
      << said;
}

TEST(CaseE7, ABatchSamplerOfTheUsersOwnOverARandomSamplerIsDealtFromOneOrder) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto own = random::make_generator(50 + accelerator.process_index());  // the ranks' seeds differ
    auto random = std::make_shared<data::RandomSampler>(22, data::RandomSamplerOptions{.generator = own});
    auto batches = std::make_shared<data::SamplerBatches>(random, /*batch_size=*/2);
    const auto loader = accelerator.prepare(data::DataLoader(Ids{22}, {.batch_sampler = batches, .num_workers = 4}));
    for (int epoch = 0; epoch < 2; ++epoch) {
      const auto taken = taken_by_all(accelerator, loader);
      EXPECT_EQ(sorted({taken.begin(), taken.begin() + 22}), numbers_below(22)) << epoch;
      EXPECT_EQ(Indices(taken.begin() + 22, taken.end()), Indices(taken.begin(), taken.begin() + 2)) << "the padding";
    }
  });
}

TEST(CaseE9, AnEndlessLoopOverALoaderShufflesEachPassAnewAndBySeed) {
  for (const bool seedable : {false, true}) {
    const auto two_passes = [seedable](std::int64_t seed) {
      Batches passes;
      run_thread_ranks(2, [&] {
        Accelerator accelerator({.dataloader_config = {.use_seedable_sampler = seedable, .data_seed = seed}});
        const auto loader = accelerator.prepare(shuffled(6, 1, random::make_generator(seed)));
        const auto first = taken_by_all(accelerator, loader);
        const auto second = taken_by_all(accelerator, loader);
        if (accelerator.is_main_process()) passes = {first, second};
      });
      return passes;
    };
    const auto passes = two_passes(1);
    EXPECT_NE(passes[0], passes[1]) << "seedable " << seedable;
    for (const auto& pass : passes) EXPECT_EQ(sorted(pass), numbers_below(6));
    EXPECT_EQ(two_passes(1), passes);
    EXPECT_NE(two_passes(2)[1], passes[1]);
  }
}

TEST(CaseP1, FewerItemsThanRanksAreNotPaddedUnasked) {
  run_thread_ranks(3, [] {
    const Accelerator accelerator;
    const std::vector<Value> shares{Value::list({0}), Value::list({1}), Value::list({})};
    const auto rank = static_cast<std::size_t>(accelerator.process_index());
    EXPECT_EQ(accelerator.split_between_processes(Value::list({0, 1})), shares[rank]);
    const auto rows = accelerator.split_between_processes(at::arange(2));
    EXPECT_EQ(rows.tensor().size(0), rank < 2 ? 1 : 0);
    EXPECT_EQ(accelerator.split_between_processes(Value::list({0, 1}), /*apply_padding=*/true).size(), 1U);
  });
}

TEST(CaseP3, ANegativeDimensionIsPaddedCountedFromTheEnd) {
  for (const int world : {2, 3}) {
    run_thread_ranks(world, [world] {
      const Accelerator accelerator;
      const auto own = accelerator.process_index() + 1;
      const auto padded = accelerator.pad_across_processes(at::ones({2, own}), {.dim = -1}).tensor();
      EXPECT_EQ(padded.sizes(), (std::vector<std::int64_t>{2, world}));
      EXPECT_EQ(padded.sum().item<double>(), 2.0 * own);
      const auto first = accelerator.pad_across_processes(at::ones({own, 2}), {.dim = -2}).tensor();
      EXPECT_EQ(first.sizes(), (std::vector<std::int64_t>{world, 2}));
      const auto cube = at::ones({1, 1, own});
      EXPECT_TRUE(accelerator.pad_across_processes(cube, {.dim = -4}).tensor().is_same(cube)) << "out of range";
      EXPECT_TRUE(accelerator.pad_across_processes(cube, {.dim = 3}).tensor().is_same(cube)) << "out of range";
    });
  }
}

}  // namespace
}  // namespace lockstep
