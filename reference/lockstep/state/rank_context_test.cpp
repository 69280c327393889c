// A rank's context follows it into every thread that works for it, and nowhere else.
#include "lockstep/state/rank_context.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <future>
#include <set>

#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep::state {
namespace {

using test::run_thread_ranks;

int rank_here() { return RankContext::current().thread_world().rank; }

TEST(RankContext, AProcessThatIsOneRankHasOneForAllItsThreads) {
  const auto* const here = &RankContext::current();
  const RankContext* there = nullptr;
  std::thread([&there] { there = &RankContext::current(); }).join();
  EXPECT_EQ(there, here);
}

TEST(RankContext, AThreadOutsideAnyRankIsToldSoWhileThereAreThreadRanks) {
  run_thread_ranks(2, [] {
    const PartialState state;
    auto outside = std::async(std::launch::async, [] {
      return test::message_of<NoRankContext>([] { static_cast<void>(RankContext::current()); });
    });
    const auto text = outside.get();
    EXPECT_NE(text.find("start_thread"), std::string::npos) << text;
    EXPECT_NE(text.find("StateScope"), std::string::npos) << text;
    std::thread([] { EXPECT_THROW(PartialState(), NoRankContext); }).join();
    state.wait_for_everyone();
  });
  EXPECT_NO_THROW(RankContext::current());  // afterwards the process is a rank again
}

TEST(RankContext, ItsOwnThreadsBelongToTheRank) {
  run_thread_ranks(3, [] {
    const PartialState state;
    int seen = -1;
    int seen_below = -1;
    state.rank()
        .start_thread([&] {
          seen = PartialState().process_index();
          RankContext::current().start_thread([&] { seen_below = rank_here(); }).join();
        })
        .join();
    EXPECT_EQ(seen, state.process_index());
    EXPECT_EQ(seen_below, state.process_index());
  });
}

TEST(RankContext, AScopeInstallsARankAndRestoresTheOneBefore) {
  run_thread_ranks(1, [] {
    const auto* const before = &RankContext::current();
    const auto other = RankContext::from({{"ACCELERATE_USE_CPU", "1"}});
    {
      const StateScope scope(other);
      EXPECT_EQ(&RankContext::current(), other.get());
    }
    EXPECT_EQ(&RankContext::current(), before);
  });
}

TEST(RankContext, BackwardHooksSeeTheirRank) {
  run_thread_ranks(3, [] {
    const PartialState state;
    std::vector<int> seen;
    auto weight = torch::ones({2}, torch::requires_grad());
    weight.register_hook([&seen](const at::Tensor&) { seen.push_back(rank_here()); });
    auto hidden = weight * 2;
    hidden.register_hook([&seen](const at::Tensor&) { seen.push_back(rank_here()); });
    hidden.sum().backward();
    EXPECT_EQ(seen, (std::vector<int>{state.process_index(), state.process_index()}));
  });
}

TEST(RankContext, EachThreadRankHasAGeneratorThatIsNotTheProcessOne) {
  std::mutex mutex;
  std::set<std::uint64_t> seeds;
  run_thread_ranks(4, [&] {
    const auto generator = RankContext::current().generator();
    EXPECT_NE(generator, at::detail::getDefaultCPUGenerator());
    const std::lock_guard lock(mutex);
    seeds.insert(generator.current_seed());
  });
  EXPECT_EQ(seeds.size(), 4U);
  EXPECT_EQ(RankContext::current().generator(), at::detail::getDefaultCPUGenerator());
}

TEST(RankContext, TheEnvironmentIsReadOnce) {
  as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] {
    const ProcessVariable later("ACCELERATE_DEBUG_MODE", "1");
    EXPECT_FALSE(PartialState().debug());
  });
}

}  // namespace
}  // namespace lockstep::state
