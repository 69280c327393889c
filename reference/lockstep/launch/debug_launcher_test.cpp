#include "lockstep/launch/debug_launcher.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/state/partial_state.h"
#include "run_ranks.h"

namespace lockstep::launch {
namespace {

using state::Environment;
using state::PartialState;

TEST(NB_008, RunsTheFunctionOncePerProcessOverGlooOnTheCpu) {
  test::run_ranks(3, [] {
    const PartialState state;
    EXPECT_EQ(state.num_processes(), 3);
    EXPECT_EQ(state.backend(), "gloo");
    EXPECT_EQ(state.distributed_type(), state::DistributedType::multi_cpu);
    auto seen = at::zeros({3}, at::kLong);
    seen[state.process_index()] = 1;
    state.world_group().all_reduce(seen).wait();
    EXPECT_TRUE(seen.eq(1).all().item<bool>());
  });
}

TEST(NB_008, GivesTheChildrenTheRecordedEnvironment) {
  test::run_ranks(2, [] {
    const auto environment = Environment::of_process();
    EXPECT_EQ(environment.find("WORLD_SIZE"), "2");
    EXPECT_EQ(environment.find("MASTER_ADDR"), "127.0.0.1");
    EXPECT_EQ(environment.find("MASTER_PORT"), "29500");
    EXPECT_EQ(environment.find("ACCELERATE_MIXED_PRECISION"), "no");
    EXPECT_TRUE(environment.flag("ACCELERATE_USE_CPU"));
    EXPECT_EQ(environment.find("GLOO_SOCKET_IFNAME"), "lo");
    EXPECT_TRUE(environment.flag("FORK_LAUNCHED"));
    EXPECT_TRUE(environment.find("ACCELERATE_DEBUG_RDV_FILE"));
  });
}

TEST(NB_009, TheLocalIndexIsTheIndex) {
  test::run_ranks(2, [] {
    const PartialState state;
    EXPECT_EQ(state.local_process_index(), state.process_index());
    EXPECT_EQ(state.is_local_main_process(), state.process_index() == 0);
  });
}

TEST(NB_010, DestroyingTheGroupIsANoOpInAForkedRank) {
  test::run_ranks(2, [] {
    PartialState state;
    state.destroy_process_group();
    state.wait_for_everyone();
    EXPECT_TRUE(state.backend());
  });
}

TEST(NB_006, TheParentsEnvironmentIsTheSameAfterwards) {
  const auto before = Environment::of_process();
  test::run_ranks(2, [] { EXPECT_TRUE(Environment::of_process().find("RANK")); });
  EXPECT_EQ(Environment::of_process(), before);
  test::failures_of(2, [] { throw std::runtime_error("planted"); });
  EXPECT_EQ(Environment::of_process(), before);
}

TEST(DebugLauncher, RefusesToForkAProcessOfSeveralThreadsNamingBothWaysOut) {
  std::atomic<bool> go_on{true};
  std::thread other([&go_on] {
    while (go_on) std::this_thread::yield();
  });
  const auto text = test::message_of<InvalidArgument>([] { debug_launcher([] {}, 2); });
  go_on = false;
  other.join();
  EXPECT_NE(text.find("2 threads"), std::string::npos);
  EXPECT_NE(text.find("start=spawn"), std::string::npos);
  EXPECT_NE(text.find("set_num_threads(1)"), std::string::npos);
}

TEST(DebugLauncher, RefusesFewerThanOneProcess) {
  EXPECT_THROW(debug_launcher([] {}, 0), InvalidArgument);
}

TEST(DebugLauncher, TakesItsTimeoutFromTheEnvironmentUnlessItIsGiven) {
  const auto timeout_of_ranks = [] { return Environment::of_process().seconds("LOCKSTEP_TIMEOUT")->count(); };
  auto environment = Environment::of_process();
  environment.set("LOCKSTEP_TIMEOUT", "7");
  environment.apply_to_process();
  test::run_ranks(1, [&] { EXPECT_EQ(timeout_of_ranks(), 7000); });
  test::run_ranks(1, [&] { EXPECT_EQ(timeout_of_ranks(), 3000); }, {.timeout = std::chrono::seconds(3)});
  EXPECT_THROW(debug_launcher([] {}, 1, {.timeout = std::chrono::seconds(0)}), InvalidArgument);
  environment.set("LOCKSTEP_TIMEOUT", "abc");
  environment.apply_to_process();
  EXPECT_THROW(debug_launcher([] {}, 1), InvalidArgument);
}

TEST(DebugLauncher, ARankThatReturnsEarlyIsNamedByThoseWhoWaitForIt) {
  const auto failures = test::failures_of(2, [] {
    const PartialState state;
    if (state.is_main_process()) return;
    state.wait_for_everyone();
  });
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures.front().rank, 1);
  EXPECT_NE(failures.front().message.find("rank 0 was lost: exited with code 0 while others were at work"),
            std::string::npos)
      << failures.front().message;
}

TEST(DebugLauncher, SpawnsFromAProcessOfSeveralThreads) {
  at::set_num_threads(2);
  static_cast<void>(at::ones({1 << 20}).sum());  // starts LibTorch's threads
  int calls_before = 0;
  debug_launcher([] {}, 1, {.start = Start::spawn});
  ++calls_before;  // reached in the spawned ranks of the second call as well
  test::run_ranks(2,
                  [&calls_before] {
                    const PartialState state;
                    EXPECT_EQ(state.num_processes(), 2);
                    EXPECT_EQ(calls_before, 1);
                    state.wait_for_everyone();
                  },
                  {.start = Start::spawn});
  const auto failures = test::failures_of(2,
                                          [] {
                                            const PartialState state;
                                            if (state.process_index() == 1) throw InvalidArgument("planted");
                                            state.wait_for_everyone();
                                          },
                                          {.start = Start::spawn});
  EXPECT_EQ(failures.front().rank, 1);
  EXPECT_EQ(failures.front().kind, "ValueError");
}

TEST(DebugLauncher, LabelsEachLineWithItsRank) {
  testing::internal::CaptureStdout();
  debug_launcher(
      [] {
        const PartialState state;
        std::printf("half a ");
        std::fflush(stdout);
        std::printf("line\nand one without end");
      },
      2);
  const auto text = testing::internal::GetCapturedStdout();
  for (const char* line : {"[rank 0] half a line\n", "[rank 1] half a line\n", "[rank 1] and one without end\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST(DebugLauncher, EndsWhatARankHasStarted) {
  char path[] = "/tmp/lockstep-XXXXXX";
  const int file = mkstemp(path);
  debug_launcher(
      [file] {
        if (Environment::of_process().number("RANK") != 0) return;
        const pid_t child = fork();
        if (child == 0) {
          pause();
          _exit(0);
        }
        dprintf(file, "%d", child);
      },
      2);
  std::ifstream stream(path);
  int child = 0;
  stream >> child;
  unlink(path);
  close(file);
  ASSERT_GT(child, 0);
  const auto gone = [child] {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string line;
    return !std::getline(stat, line) || line.find(") Z") != std::string::npos;
  };
  for (int i = 0; i < 100 && !gone(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(gone());
}

std::vector<std::string> temporary_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

TEST(DebugLauncher, TidiesUpBeforeASignalEndsIt) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto before = temporary_names();
    int started[2];
    ASSERT_EQ(pipe(started), 0);
    const pid_t launcher = fork();
    if (launcher == 0) {
      close(started[0]);
      debug_launcher(
          [&started] {
            static_cast<void>(write(started[1], "x", 1));
            pause();
          },
          2);
      _exit(0);
    }
    close(started[1]);
    char byte = 0;
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(read(started[0], &byte, 1), 1);
    kill(launcher, signal);
    EXPECT_EQ(read(started[0], &byte, 1), 0) << "no rank is left that could write";
    close(started[0]);
    int status = 0;
    waitpid(launcher, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(temporary_names(), before);
  }
}

TEST(DebugLauncher, ARankThatLeavesWithExitZeroHasFailed) {
  const auto failures = test::failures_of(2, [] {
    const PartialState state;
    if (state.process_index() == 1) std::exit(0);
    state.wait_for_everyone();
  });
  EXPECT_EQ(failures.front().rank, 1);
  EXPECT_EQ(failures.front().kind, "exit");
  EXPECT_NE(failures.back().message.find("exited with code 0"), std::string::npos) << failures.back().message;
}

}  // namespace
}  // namespace lockstep::launch
