#include "lockstep/launch/thread_launcher.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <set>

#include "lockstep/comm/operations.h"
#include "lockstep/state/partial_state.h"

namespace lockstep::launch {
namespace {

using state::PartialState;
using std::chrono::seconds;
using std::chrono::steady_clock;

std::vector<RankFailure> failures_of(int num_ranks, const std::function<void()>& function,
                                     const ThreadLauncherOptions& options = {}) {
  try {
    thread_launcher(function, num_ranks, options);
  } catch (const ChildFailed& failed) {
    return failed.failures();
  }
  ADD_FAILURE() << "no rank failed";
  return {RankFailure{}};
}

int rank_here() { return state::RankContext::current().thread_world().rank; }

TEST(ThreadLauncher, AWorldOfSixteen) {
  std::mutex mutex;
  std::set<int> ranks;
  thread_launcher(
      [&] {
        const PartialState state;
        EXPECT_EQ(state.num_processes(), 16);
        const auto sum = comm::reduce(at::full({3}, state.process_index()), state.world_group(), comm::Reduction::sum);
        EXPECT_TRUE(sum.tensor().eq(120).all().item<bool>());
        const std::lock_guard lock(mutex);
        ranks.insert(state.process_index());
      },
      16);
  EXPECT_EQ(ranks.size(), 16U);
}

TEST(ThreadLauncher, WorldsFollowOneAnother) {
  for (int size = 1; size <= 4; ++size) {
    thread_launcher(
        [size] {
          const PartialState state;
          EXPECT_EQ(state.num_processes(), size);
          state.wait_for_everyone();
        },
        size);
  }
}

TEST(ThreadLauncher, RefusesFewerThanOneRank) {
  EXPECT_THROW(thread_launcher([] {}, 0), InvalidArgument);
}

void expect_named_by_all(const std::vector<RankFailure>& failures, int rank, const std::string& cause) {
  ASSERT_EQ(failures.size(), 3U);
  EXPECT_EQ(failures.front().rank, rank);
  EXPECT_NE(failures.front().message.find(cause), std::string::npos) << failures.front().message;
  for (auto other = failures.begin() + 1; other != failures.end(); ++other) {
    EXPECT_NE(other->message.find("rank " + std::to_string(rank)), std::string::npos) << other->message;
    EXPECT_NE(other->message.find(cause), std::string::npos) << other->message;
  }
}

TEST(ThreadLauncher, AFailingRankEndsTheOthersWaitsAtOnceAndIsNamedByThem) {
  const auto begin = steady_clock::now();
  const auto failures = failures_of(3, [] {
    const PartialState state;
    if (state.process_index() == 1) throw InvalidArgument("planted");
    state.wait_for_everyone();
  });
  EXPECT_LT(steady_clock::now() - begin, seconds(5));
  expect_named_by_all(failures, 1, "planted");
  EXPECT_EQ(failures.front().kind, "ValueError");
}

TEST(ThreadLauncher, SoDoesOneThatFailsBeforeTheRanksHaveMet) {
  const auto begin = steady_clock::now();
  const auto failures = failures_of(3, [] {
    if (rank_here() == 2) throw std::out_of_range("planted");
    static_cast<void>(PartialState());
  });
  EXPECT_LT(steady_clock::now() - begin, seconds(5));
  expect_named_by_all(failures, 2, "planted");
  EXPECT_EQ(failures.front().kind, "IndexError");
}

TEST(ThreadLauncher, SoDoesOneThatThrowsWhatIsNoException) {
  const auto failures = failures_of(3, [] {
    const PartialState state;
    if (state.process_index() == 0) throw 42;
    state.wait_for_everyone();
  });
  expect_named_by_all(failures, 0, "unknown type");
}

TEST(ThreadLauncher, ARankThatNeverCallsIsNamedWhenTheTimeIsOver) {
  const auto begin = steady_clock::now();
  const auto failures = failures_of(3,
                                    [] {
                                      const PartialState state;
                                      if (state.process_index() != 1) state.wait_for_everyone();
                                    },
                                    {.timeout = std::chrono::milliseconds(500)});
  EXPECT_LT(steady_clock::now() - begin, seconds(6));
  ASSERT_EQ(failures.size(), 2U);
  for (const auto& failure : failures) {
    EXPECT_NE(failure.message.find("rank 1"), std::string::npos) << failure.message;
  }
}

TEST(ThreadLauncher, EachRankHasItsOwnGeneratorAndLeavesTheProcessOneAlone) {
  const auto before = at::detail::getDefaultCPUGenerator().get_state();
  thread_launcher(
      [] {
        const PartialState state;
        auto generator = state.rank().generator();
        generator.set_current_seed(7);
        // Drawn at different times, by each rank from its own.
        std::vector<at::Tensor> drawn;
        for (int i = 0; i < 3; ++i) {
          if (i == state.process_index()) state.wait_for_everyone();
          drawn.push_back(at::rand({2}, generator));
        }
        const auto all = comm::gather(at::cat(drawn).unsqueeze(0), state.world_group()).tensor();
        EXPECT_TRUE(all[0].equal(all[1]));
        EXPECT_TRUE(all[0].equal(all[2]));
      },
      3);
  EXPECT_TRUE(at::detail::getDefaultCPUGenerator().get_state().equal(before));
}

}  // namespace
}  // namespace lockstep::launch
