#include "lockstep/state/process_control.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep::state {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::run_thread_ranks;

void sleep_for(milliseconds time) { std::this_thread::sleep_for(time); }

TEST(STATE_130, WaitForEveryoneIsABarrier) {
  std::atomic<int> arrived{0};
  run_thread_ranks(3, [&arrived] {
    const PartialState state;
    sleep_for(milliseconds(30 * state.process_index()));
    ++arrived;
    state.wait_for_everyone();
    EXPECT_EQ(arrived, 3);
  });
  as_rank({{"ACCELERATE_USE_CPU", "1"}}, [] { EXPECT_NO_THROW(PartialState().wait_for_everyone()); });
}

template <typename First>
void expect_main_goes_first() {
  static constexpr auto kWork = milliseconds(100);
  std::atomic<bool> done{false};
  run_thread_ranks(3, [&done] {
    const PartialState state;
    state.wait_for_everyone();
    const auto begin = steady_clock::now();
    const First first(state);
    if (state.is_main_process()) {
      sleep_for(kWork);
      done = true;
    } else {
      EXPECT_TRUE(done);
      EXPECT_GE(steady_clock::now() - begin, kWork - milliseconds(20));
    }
  });
}

TEST(STATE_131, TheMainProcessRunsTheBlockBeforeTheOthers) { expect_main_goes_first<MainProcessFirst>(); }
TEST(STATE_131, SoDoesTheLocalMainProcess) { expect_main_goes_first<LocalMainProcessFirst>(); }

TEST(STATE_132, WhenTheBlockThrowsOnTheMainProcessTheOthersAreReleased) {
  std::atomic<int> entered{0};
  run_thread_ranks(3, [&entered] {
    const PartialState state;
    const auto block = [&] {
      const MainProcessFirst first(state);
      if (state.is_main_process()) throw std::runtime_error("planted");
      ++entered;
    };
    if (state.is_main_process()) {
      EXPECT_EQ(test::message_of<std::runtime_error>(block), "planted");
    } else {
      EXPECT_NO_THROW(block());
    }
    state.wait_for_everyone();  // the ranks are still in step
  });
  EXPECT_EQ(entered, 2);
}

// A scope inside a destructor that runs while an exception passes has not failed itself: its barrier may throw.
TEST(STATE_132, OnlyAnExceptionOfTheBlockCountsAsItsFailure) {
  struct CleanUp {
    const PartialState& state;
    ~CleanUp() {
      const MainProcessFirst first(state);
      order.push_back(1);
    }
    std::vector<int>& order;
  };
  run_thread_ranks(2, [] {
    const PartialState state;
    std::vector<int> order;
    try {
      const CleanUp clean_up{state, order};
      throw std::runtime_error("planted");
    } catch (const std::runtime_error&) {
      order.push_back(2);
    }
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    state.wait_for_everyone();
  });
}

// Where a decorated function ran in a world of `size`.
template <typename Decorate>
std::set<int> ranks_that_run(int size, const Decorate& decorate) {
  std::mutex mutex;
  std::set<int> ranks;
  run_thread_ranks(size, [&] {
    const PartialState state;
    const int rank = state.process_index();
    const auto function = decorate(state, [rank](int number) { return rank * 100 + number; });
    const std::optional<int> result = function(7);
    if (!result) return;
    EXPECT_EQ(*result, rank * 100 + 7);
    const std::lock_guard lock(mutex);
    ranks.insert(rank);
  });
  return ranks;
}

TEST(STATE_133, FunctionsRunOnTheirRankAndReturnNothingElsewhere) {
  using Ranks = std::set<int>;
  EXPECT_EQ(ranks_that_run(3, [](const auto& state, auto f) { return on_main_process(state, f); }), (Ranks{0}));
  EXPECT_EQ(ranks_that_run(3, [](const auto& state, auto f) { return on_local_main_process(state, f); }), (Ranks{0}));
  EXPECT_EQ(ranks_that_run(3, [](const auto& state, auto f) { return on_last_process(state, f); }), (Ranks{2}));
  EXPECT_EQ(ranks_that_run(3, [](const auto& state, auto f) { return on_process(state, 1, f); }), (Ranks{1}));
  EXPECT_EQ(ranks_that_run(3, [](const auto& state, auto f) { return on_process(state, 3, f); }), Ranks());
  EXPECT_EQ(ranks_that_run(3, [](const auto& state, auto f) { return on_local_process(state, 2, f); }), (Ranks{2}));
}

TEST(STATE_133, AWorldOfOneRunsThemAll) {
  using Ranks = std::set<int>;
  EXPECT_EQ(ranks_that_run(1, [](const auto& state, auto f) { return on_last_process(state, f); }), (Ranks{0}));
  EXPECT_EQ(ranks_that_run(1, [](const auto& state, auto f) { return on_process(state, 5, f); }), (Ranks{0}));
  EXPECT_EQ(ranks_that_run(1, [](const auto& state, auto f) { return on_local_process(state, 5, f); }), (Ranks{0}));
}

TEST(STATE_133, AFunctionWithoutAResultSimplyReturns) {
  std::atomic<int> calls{0};
  run_thread_ranks(3, [&calls] { on_main_process(PartialState(), [&calls] { ++calls; })(); });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace lockstep::state
