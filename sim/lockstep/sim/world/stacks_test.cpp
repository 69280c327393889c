#include "lockstep/sim/world/stacks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace lockstep::sim {

// In no unnamed namespace and not inlined: their names are looked for.
[[gnu::noinline]] void wait_in_the_thread(int ready) {
  if (write(ready, "t", 1) != 1) _exit(1);
  for (;;) pause();
}

[[gnu::noinline]] void wait_in_main(int ready) {
  if (write(ready, "m", 1) != 1) _exit(1);
  for (;;) pause();
}

namespace {

TEST(Stacks, ShowEveryThreadWithFunctionFileAndLine) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::thread other([&] {
      prctl(PR_SET_NAME, "worker");
      wait_in_the_thread(ready[1]);
    });
    wait_in_main(ready[1]);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  usleep(10000);  // until both are in pause()
  const auto text = StackReader().stacks_of(child);
  for (const char* part : {"wait_in_main at ", "wait_in_the_thread at ", "stacks_test.cpp:", "(worker)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "it goes on";
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

TEST(Stacks, SayWhyThereAreNone) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_NE(StackReader().stacks_of(child).find("no stacks"), std::string::npos) << StackReader().stacks_of(child);
}

}  // namespace
}  // namespace lockstep::sim
