// A user looks at ranks: under gdb, by their stacks, or while they are held after a verdict.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <thread>

#include "lockstep/sim/world/test_support/fake_job_view.h"
#include "lockstep/sim/world/test_support/launched.h"

namespace lockstep::sim::test {
namespace {

using std::chrono::milliseconds;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Ranks that wait for ever; their monitors find a deadlock as soon as both are there.
const std::string kDeadlock =
    "echo $RANK $$ 1 >> $F/joined; [ $RANK = 0 ] || { sleep 0.2; echo '{\"verdict\": \"deadlock\", \"cause\": "
    "\"planted\", "
    "\"ranks\": []}' > $F/v; mv $F/v $F/verdict; }; exec sleep 1000";

TEST(Debugging, StacksAreToldBeforeTheRanksAreEnded) {
  const Folder folder;
  auto options = shell(folder, 2, kDeadlock);
  options.on_verdict = OnVerdict::stacks;
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 10);
  for (const char* part : {"told: rank 0, process ", "told: rank 1, process ", "nanosleep", "libc.so.6"}) {
    EXPECT_TRUE(has(run.errors(), part)) << part << " is not in\n" << run.errors();
  }
}

TEST(Debugging, RanksAreHeldUntilEnter) {
  const Folder folder;
  auto options = shell(folder, 2, kDeadlock);
  options.on_verdict = OnVerdict::hold;
  auto keyboard = launch::make_pipe();
  Launched run(folder, options, {.input = keyboard.read.number()});
  EXPECT_TRUE(holds_soon([&] { return has(run.errors(), "gdb -p "); }));
  EXPECT_TRUE(has(run.errors(), "told: deadlock: planted\n  rank 0: gdb -p ")) << run.errors();
  EXPECT_TRUE(has(text_of(folder.file("joined")), "1 "));
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(kill(run.pid(), 0), 0) << "it still holds";
  EXPECT_EQ(run.output(), "");
  ASSERT_EQ(write(keyboard.write.number(), "\n", 1), 1);
  EXPECT_EQ(run.wait(), 10);
}

TEST(Debugging, RanksAreHeldUntilCtrlCWhichIsNotTheVerdict) {
  const Folder folder;
  auto options = shell(folder, 2, kDeadlock);
  options.on_verdict = OnVerdict::hold;
  Launched run(folder, options);
  EXPECT_TRUE(holds_soon([&] { return has(run.errors(), "gdb -p "); }));
  std::this_thread::sleep_for(milliseconds(100));
  kill(run.pid(), SIGINT);
  EXPECT_EQ(run.wait(), 10);
  EXPECT_EQ(run.verdict()["cause"], "planted");
}

TEST(Debugging, TheRankUnderGdbReadsOurInputAndIsPausedWhileTheOthersWaitWithoutALimit) {
  const Folder folder;
  std::ofstream(folder.file("rank")) << "#!/bin/sh\n"
                                        "echo $RANK $$ 1 >> $F/joined; echo $LOCKSTEP_TIMEOUT > $F/timeout$RANK\n"
                                        "until [ -e $F/go_on ]; do sleep 0.02; done\n";
  auto options = shell(folder, 2, "");
  options.argv = {"sh", folder.file("rank")};
  options.gdb_rank = 1;
  options.timeout = milliseconds(500);  // counts only while nobody is paused
  Launched run(folder, options,
               {.text = "set confirm off\nset debuginfod enabled off\nset startup-with-shell off\n"
                        "starti\nshell sleep 1\nshell touch $F/go_on\ncontinue\nquit\n"});
  EXPECT_EQ(run.wait(), 0) << run.verdict() << run.output() << run.errors();
  EXPECT_TRUE(has(run.output(), "(gdb)")) << run.output();
  EXPECT_TRUE(has(text_of(folder.file("paused")), "1 paused"));
  EXPECT_FALSE(has(text_of(folder.file("paused")), "0 paused"));
  EXPECT_EQ(text_of(folder.file("timeout0")), "86400\n");
}

TEST(Debugging, WithoutGdbItSaysHowToGetIt) {
  const Folder folder;
  auto options = shell(folder, 2, "exit 0");
  options.argv.front() = "/bin/sh";
  options.environment["PATH"] = folder.path().string();
  options.gdb_rank = 0;
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 2);
  EXPECT_TRUE(has(run.error(), "apt-get install gdb")) << run.error();
}

}  // namespace
}  // namespace lockstep::sim::test
