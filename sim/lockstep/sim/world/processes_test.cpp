#include "lockstep/sim/world/processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "lockstep/sim/world/test_support/launched.h"

namespace lockstep::sim::test {
namespace {

// A child that waits until it is ended, with a child of its own that does not care.
pid_t start_family() {
  const pid_t parent = fork();
  if (parent != 0) return parent;
  signal(SIGTERM, SIG_IGN);
  fork();
  for (;;) pause();
}

bool is_among(const std::vector<ProcessInfo>& processes, pid_t pid) {
  return std::ranges::find(processes, pid, &ProcessInfo::pid) != processes.end();
}

TEST(Processes, AllDescendantsEndButForThoseThatAreSpared) {
  const SubreaperScope subreaper;
  const pid_t spared = start_family();
  const pid_t ended = start_family();
  EXPECT_TRUE(holds_soon([] { return descendants_of_this_process().size() == 4; }));
  EXPECT_TRUE(end_descendants({spared}));
  const auto left = descendants_of_this_process();
  EXPECT_EQ(left.size(), 2U);
  EXPECT_TRUE(is_among(left, spared));
  EXPECT_FALSE(is_among(left, ended));
  EXPECT_TRUE(end_descendants({}));
  EXPECT_TRUE(descendants_of_this_process().empty());
}

TEST(Processes, AreNamedByTheirArguments) {
  const pid_t child = fork();
  if (child == 0) execlp("sleep", "sleep", "1000", nullptr);
  EXPECT_TRUE(holds_soon([] {
    const auto found = descendants_of_this_process();
    return found.size() == 1 && found.front().command == "sleep 1000";
  }));
  EXPECT_TRUE(end_descendants({}));
}

TEST(Processes, ADebuggerIsSeen) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  EXPECT_EQ(tracer_of(child), getpid());
  EXPECT_EQ(tracer_of(getpid()), 0);
  EXPECT_TRUE(end_descendants({}));
}

TEST(Processes, AHandlerIsSeen) {
  EXPECT_FALSE(catches(getpid(), SIGRTMAX - 1));
  signal(SIGRTMAX - 1, [](int) {});
  EXPECT_TRUE(catches(getpid(), SIGRTMAX - 1));
  EXPECT_FALSE(catches(getpid(), SIGRTMAX));
  signal(SIGRTMAX - 1, SIG_IGN);
  EXPECT_FALSE(catches(getpid(), SIGRTMAX - 1));
  signal(SIGRTMAX - 1, SIG_DFL);
}

TEST(Processes, SharedMemoryIsTheJobsIfItBearsItsWholeName) {
  const auto job = "processes-test-" + std::to_string(getpid()) + "-1";
  for (const auto& name : {"a-" + job, job + ".b", job + "2"}) std::ofstream("/dev/shm/" + name) << "x";
  auto removed = remove_shared_memory_of(job);
  std::ranges::sort(removed);
  EXPECT_EQ(removed, std::vector<std::string>({"a-" + job, job + ".b"}));
  EXPECT_EQ(remove_shared_memory_of(job + "2"), std::vector<std::string>({job + "2"}));
}

}  // namespace
}  // namespace lockstep::sim::test
