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

// What it takes until the ranks of kDeadlock are held.
struct HeldRun {
  Folder folder;
  Terminal terminal;
  Launched run;

  HeldRun() : run(folder, options(folder), {.input = terminal.terminal.number()}) {
    EXPECT_TRUE(holds_soon([&] { return has(run.errors(), "gdb -p "); })) << run.errors();
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_EQ(kill(run.pid(), 0), 0) << "it still holds";
  }

  static LaunchOptions options(const Folder& folder) {
    auto options = shell(folder, 2, kDeadlock);
    options.on_verdict = OnVerdict::hold;
    return options;
  }
};

TEST(Debugging, RanksAreHeldUntilEnter) {
  HeldRun held;
  EXPECT_TRUE(has(held.run.errors(), "told: deadlock: planted\n  rank 0: gdb -p ")) << held.run.errors();
  EXPECT_EQ(held.run.output(), "");
  held.terminal.type("\n");
  EXPECT_EQ(held.run.wait(), 10);
}

TEST(Debugging, RanksAreHeldUntilCtrlCWhichIsNotTheVerdict) {
  HeldRun held;
  kill(held.run.pid(), SIGINT);
  EXPECT_EQ(held.run.wait(), 10);
  EXPECT_EQ(held.run.verdict()["cause"], "planted");
}

TEST(Debugging, RanksAreHeldNoLongerThanSomethingCanBeTyped) {
  HeldRun held;
  held.terminal.type("\x04");  // Ctrl-D, which is read as the end of input
  EXPECT_EQ(held.run.wait(), 10);
}

TEST(Debugging, WithoutATerminalStacksAreShownInPlaceOfAHold) {
  const Folder folder;
  Launched run(folder, HeldRun::options(folder));
  EXPECT_EQ(run.wait(), 10);
  EXPECT_TRUE(has(run.errors(), "told: stdin is no terminal")) << run.errors();
  EXPECT_TRUE(has(run.errors(), "told: rank 1, process ")) << run.errors();
  EXPECT_FALSE(has(run.errors(), "gdb -p")) << run.errors();
}

// A rank that prints its own stacks at the signal, as Python's faulthandler does, and one that the signal would end.
TEST(Debugging, ARankThatCanPrintsItsOwnStacksFirst) {
  const Folder folder;
  auto options = shell(folder, 2,
                       "[ $RANK = 0 ] || trap 'for i in 1 2 3; do echo frame $i >&2; sleep 0.1; done' 63; "
                       "echo $RANK $$ 1 >> $F/joined; [ $RANK = 0 ] || { sleep 0.2; "
                       "echo '{\"verdict\": \"deadlock\", \"cause\": \"planted\", \"ranks\": []}' > $F/v; "
                       "mv $F/v $F/verdict; }; while :; do sleep 0.05; done");
  options.on_verdict = OnVerdict::stacks;
  options.holds_back = true;
  ASSERT_EQ(SIGRTMAX - 1, 63);
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 10);
  const auto errors = run.errors();
  EXPECT_TRUE(has(errors, "[rank 1] frame 3\n")) << errors;
  EXPECT_LT(errors.find("frame 3"), errors.find("told: rank 0, process ")) << errors;
  EXPECT_TRUE(has(errors, "told: rank 0, process ")) << errors;
}

const std::string kPython = "/usr/bin/python3";

TEST(Debugging, PythonRanksPrintTheirFrames) {
  ASSERT_TRUE(std::filesystem::exists(kPython)) << "ci/setup installs it";
  const Folder folder;
  std::ofstream(folder.file("train.py"))
      << "import faulthandler, os, signal, time\n"
         "faulthandler.register(signal.SIGRTMAX - 1, all_threads=True)\n"
         "def wait_for_the_others():\n"
         "    time.sleep(1000)\n"
         "with open(os.environ['F'] + '/v' + os.environ['RANK'], 'w') as file:\n"
         "    file.write('{\"verdict\": \"deadlock\", \"cause\": \"planted\", \"ranks\": []}')\n"
         "if os.environ['RANK'] == '1':\n"
         "    time.sleep(0.3)\n"
         "    os.rename(file.name, os.environ['F'] + '/verdict')\n"
         "wait_for_the_others()\n";
  auto options = shell(folder, 2, "");
  options.argv = {kPython, folder.file("train.py")};
  options.on_verdict = OnVerdict::stacks;
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 10);
  for (const char* part : {"[rank 0]   File \"", "[rank 1]   File \"", "line 4 in wait_for_the_others"}) {
    EXPECT_TRUE(has(run.errors(), part)) << part << " is not in\n" << run.errors();
  }
}

TEST(Debugging, TheRankUnderGdbReadsOurInputAndIsPausedWhileTheOthersWaitWithoutALimit) {
  const Folder folder;
  std::ofstream(folder.file("rank"))
      << "#!/bin/sh\n"
         "echo $RANK $$ 1 >> $F/joined; echo $LOCKSTEP_TIMEOUT $LOCKSTEP_SIM_SPEC > $F/told$RANK\n"
         "until [ -e $F/go_on ]; do sleep 0.02; done\n";
  auto options = shell(folder, 2, "");
  options.argv = {"sh", folder.file("rank")};
  options.debugged = DebuggedRank{.rank = 1};
  options.timeout = milliseconds(500);  // counts only while nobody is paused
  Launched run(folder, options,
               {.text = "set confirm off\nset debuginfod enabled off\nset startup-with-shell off\n"
                        "starti\nshell sleep 1\nshell touch $F/go_on\ncontinue\nquit\n"});
  EXPECT_EQ(run.wait(), 0) << run.verdict() << run.output() << run.errors();
  EXPECT_TRUE(has(run.output(), "(gdb)")) << run.output();
  EXPECT_TRUE(has(text_of(folder.file("paused")), "1 paused"));
  EXPECT_FALSE(has(text_of(folder.file("paused")), "0 paused"));
  const std::string frozen = R"(86400 {"launched":true,"strict_places":false,"frozen":true)";
  EXPECT_EQ(text_of(folder.file("told0")), frozen + "}\n");
  EXPECT_EQ(text_of(folder.file("told1")), frozen + ",\"paused\":true}\n");
}

TEST(Debugging, TheRankUnderPdbReadsOurInput) {
  ASSERT_TRUE(std::filesystem::exists(kPython)) << "ci/setup installs it";
  const Folder folder;
  std::ofstream(folder.file("train.py")) << "import os\n"
                                            "rank = os.environ['RANK']\n"
                                            "with open(os.environ['F'] + '/joined', 'a') as file:\n"
                                            "    file.write(f'{rank} {os.getpid()} 1\\n')\n";
  auto options = shell(folder, 2, "");
  options.argv = {kPython, "-u", folder.file("train.py")};
  options.debugged = DebuggedRank{.rank = 1, .debugger = DebuggedRank::Debugger::pdb};
  Launched run(folder, options, {.text = "next\nnext\np 'this is rank', rank\ncontinue\nquit\n"});
  EXPECT_EQ(run.wait(), 0) << run.verdict() << run.output() << run.errors();
  EXPECT_TRUE(has(run.output(), "(Pdb) ('this is rank', '1')")) << run.output();
}

TEST(Debugging, WithoutGdbItSaysHowToGetIt) {
  const Folder folder;
  auto options = shell(folder, 2, "exit 0");
  options.argv.front() = "/bin/sh";
  options.environment["PATH"] = folder.path().string();
  options.debugged = DebuggedRank{.rank = 0};
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 2);
  EXPECT_TRUE(has(run.error(), "apt-get install gdb")) << run.error();
}

}  // namespace
}  // namespace lockstep::sim::test
