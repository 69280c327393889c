#include "lockstep/random/synchronize.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/random/generator.h"

namespace lockstep::random {
namespace {

using comm::ProcessGroup;

/// Runs `body` on `size` ranks that are threads of this process; what one throws fails the test.
void on_ranks(int size, const std::function<void(const ProcessGroup&)>& body) {
  const auto store = comm::Store::hash(std::chrono::seconds(10));
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(ProcessGroup::create(store, ranks, rank, {.backend = "threads", .timeout = std::chrono::seconds(10)},
                                  std::make_shared<accounting::Account>(rank), nullptr));
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

std::int64_t draw(const at::Generator& generator) {
  return at::randint(0, std::int64_t{1} << 31, {1}, generator, at::kLong).item<std::int64_t>();
}

TEST(RNG_002, KnowsTheNamesAndNoOthers) {
  const std::vector<std::string> words{"torch", "cuda", "xla", "npu",    "mlu",      "sdaa",
                                       "musa",  "xpu",  "hpu", "neuron", "generator"};
  for (const auto& word : words) EXPECT_EQ(to_word(rng_type_from(word)), word);
  EXPECT_EQ(rng_type_from("torch"), RngType::torch);
  EXPECT_EQ(rng_type_from("neuron"), RngType::neuron);
  EXPECT_EQ(rng_type_from("generator"), RngType::generator);
  for (const auto* word : {"", "Torch", "tpu", "torch "}) EXPECT_THROW(rng_type_from(word), InvalidArgument) << word;
}

TEST(RNG_003, EveryRankContinuesWhereRankZeroStands) {
  const int size = 3;
  std::vector<std::int64_t> before(size), after(size);
  on_ranks(size, [&](const ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    const auto generator = make_generator(40 + group.rank());
    before[rank] = draw(generator);
    if (rank == 0) draw(generator);  // so that a fresh generator with rank 0's seed is not enough
    synchronize(RngType::generator, generator, group);
    after[rank] = draw(generator);
  });
  EXPECT_NE(before[0], before[1]);
  const auto rank_zero = make_generator(40);
  draw(rank_zero);
  draw(rank_zero);
  EXPECT_EQ(after, std::vector<std::int64_t>(size, draw(rank_zero)));
}

TEST(RNG_003, OneBroadcastOfTheStateAndOneEvent) {
  std::vector<std::string> uses(2);
  on_ranks(2, [&](const ProcessGroup& group) {
    auto& mine = uses[static_cast<std::size_t>(group.rank())];
    const auto subscription =
        group.account().subscribe([&mine](const accounting::Stamp&, const accounting::Event& event) {
          if (const auto* use = std::get_if<accounting::GeneratorUse>(&event))
            mine += use->generator + " " + use->use + ";";
        });
    synchronize(RngType::generator, make_generator(group.rank()), group);
    EXPECT_EQ(group.account().traffic().total("broadcast"), (accounting::TrafficCount{1, 5056, 5056}));
    EXPECT_EQ(group.account().traffic().total().calls, 1);
  });
  EXPECT_EQ(uses, std::vector<std::string>(2, "generator synchronize;"));
}

TEST(RNG_003, SeveralTypesOneAfterTheOther) {
  on_ranks(2, [](const ProcessGroup& group) {
    const auto sampler = make_generator(20 + group.rank());
    const auto rank_generator = make_generator(30 + group.rank());
    synchronize({RngType::torch, RngType::generator}, sampler, group, rank_generator);
    EXPECT_EQ(group.account().traffic().total("broadcast").calls, 2);
    EXPECT_EQ(draw(sampler), draw(make_generator(20)));
    EXPECT_EQ(draw(rank_generator), draw(make_generator(30)));
  });
}

TEST(RNG_003, TorchIsTheDefaultGeneratorUnlessTheRankHasItsOwn) {
  set_state(default_generator(), get_state(make_generator(11)));  // one for both ranks, which are threads
  on_ranks(2, [](const ProcessGroup& group) { synchronize(RngType::torch, make_generator(5), group); });
  EXPECT_EQ(draw(default_generator()), draw(make_generator(11)));
}

TEST(RNG_003, NothingIsExchangedInAWorldOfOne) {
  on_ranks(1, [](const ProcessGroup& group) {
    const auto generator = make_generator(9);
    synchronize(RngType::generator, generator, group);
    EXPECT_EQ(group.account().traffic().total().calls, 0);
    EXPECT_EQ(draw(generator), draw(make_generator(9)));
  });
  EXPECT_NO_THROW(synchronize(RngType::torch, std::nullopt, ProcessGroup()));
}

TEST(RNG_003, WhatIsMissingIsRefusedBeforeAnythingIsSent) {
  EXPECT_THROW(synchronize(RngType::generator, std::nullopt, ProcessGroup()), AssertionError);
  EXPECT_THROW(synchronize(RngType::generator, at::Generator(), ProcessGroup()), AssertionError);
  EXPECT_THROW(synchronize(RngType::xla, make_generator(1), ProcessGroup()), AssertionError);
  on_ranks(2, [](const ProcessGroup& group) {
    EXPECT_THROW(synchronize(RngType::generator, std::nullopt, group), AssertionError);
    EXPECT_THROW(synchronize(RngType::npu, std::nullopt, group), AssertionError);
    if (!at::hasCUDA()) EXPECT_THROW(synchronize(RngType::cuda, std::nullopt, group), AssertionError);
    EXPECT_EQ(group.account().traffic().total().calls, 0);
  });
}

TEST(RNG_004, SynchronisedRanksReportRankZerosSeed) {
  on_ranks(2, [](const ProcessGroup& group) {
    const auto generator = make_generator(100 + group.rank());
    synchronize(RngType::generator, generator, group);
    EXPECT_EQ(generator.current_seed(), 100U);
  });
}

}  // namespace
}  // namespace lockstep::random
