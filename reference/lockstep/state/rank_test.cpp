// State of ranks that are processes over Gloo: a sample of what partial_state_test.cpp and process_control_test.cpp
// show among threads, and what only a process of its own can show.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <iostream>
#include <thread>

#include "lockstep/state/accelerator_state.h"
#include "lockstep/state/physical_cores.h"
#include "lockstep/state/process_control.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep::state {
namespace {

using test::run_ranks;

TEST(STATE_102, BetweenProcesses) {
  run_ranks(3, [] {
    const PartialState state;
    EXPECT_EQ(state.num_processes(), 3);
    EXPECT_EQ(state.process_index(), Environment::of_process().number("RANK"));
    EXPECT_EQ(state.is_last_process(), state.process_index() == 2);
    EXPECT_EQ(state.backend(), "gloo");
    EXPECT_EQ(state.device(), at::Device("cpu:0"));
    EXPECT_TRUE(state.fork_launched());
    EXPECT_EQ(on_process(state, 1, [] { return 1; })().has_value(), state.process_index() == 1);
    const auto share = state.split_between_processes(Value::list({0, 1, 2, 3, 4, 5, 6}), true);
    EXPECT_EQ(share[2], Value(state.process_index() == 0 ? 2 : 6));
    const MainProcessFirst first(state);
  });
}

// Threads that the user starts belong to the process's rank like any other, and must not meet the ranks anew.
TEST(STATE_102, OnAllThreadsOfAProcess) {
  run_ranks(2, [] {
    const PartialState state;
    RankContext* elsewhere = nullptr;
    std::thread([&elsewhere] {
      const PartialState same;
      elsewhere = &same.rank();
      EXPECT_EQ(same.num_processes(), 2);
    }).join();
    EXPECT_EQ(elsewhere, &state.rank());
  });
}

TEST(STATE_109, TheLaunchersLocalIndexIsTheRank) {
  run_ranks(2, [] {
    const PartialState state;
    EXPECT_EQ(state.local_process_index(), state.process_index());
    EXPECT_EQ(state.is_local_main_process(), state.process_index() == 0);
  });
}

TEST(STATE_112, AResetDoesNotEndTheGroupAndTheStateCanBeMadeAgain) {
  run_ranks(2, [] {
    const auto group = PartialState().world_group();
    AcceleratorState::reset(/*reset_partial_state=*/true);
    auto sum = at::ones({1});
    group.all_reduce(sum).wait();
    EXPECT_EQ(sum.item<double>(), 2);
    const PartialState again;
    again.world_group().all_reduce(sum).wait();
    EXPECT_EQ(sum.item<double>(), 4);
  });
}

TEST(STATE_134, EachLocalMainProcessPrints) {
  testing::internal::CaptureStdout();
  run_ranks(2, [] { PartialState().print("hello"); });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "[rank 0] hello\n");
}

// With a local world of as many as there are cores, and of far more.
TEST(STATE_005, LocalRanksShareThePhysicalCoresWithAWarning) {
  const WorldOfOne world;
  auto environment = world.environment();
  testing::internal::CaptureStderr();
  as_rank(environment, [] { EXPECT_EQ(PartialState().num_processes(), 1); });
  EXPECT_EQ(at::get_num_threads(), num_physical_cores());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("OMP_NUM_THREADS"), std::string::npos);

  const WorldOfOne crowded_world;
  auto crowded = crowded_world.environment();
  crowded.set("LOCAL_WORLD_SIZE", "100000");
  crowded.set("OMP_NUM_THREADS", "0");  // counts as unset
  as_rank(crowded, [] { static_cast<void>(PartialState()); });
  EXPECT_EQ(at::get_num_threads(), 1);

  const WorldOfOne chosen_world;
  auto chosen = chosen_world.environment();
  chosen.set("OMP_NUM_THREADS", "3");
  at::set_num_threads(2);
  testing::internal::CaptureStderr();
  as_rank(chosen, [] { static_cast<void>(PartialState()); });
  EXPECT_EQ(at::get_num_threads(), 2);  // the user's business
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("OMP_NUM_THREADS"), std::string::npos);
}

TEST(STATE_005, CountsTheCoresThatTheProcessMayUse) {
  const int all = num_physical_cores();
  EXPECT_GE(all, 1);
  EXPECT_LE(all, static_cast<int>(std::thread::hardware_concurrency()));
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
  int first = 0;
  while (!CPU_ISSET(first, &usable)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(num_physical_cores(), 1);
  sched_setaffinity(0, sizeof usable, &usable);
}

}  // namespace
}  // namespace lockstep::state
