#include "lockstep/sim/world/launch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "lockstep/sim/world/test_support/fake_job_view.h"
#include "lockstep/sim/world/test_support/launched.h"

namespace lockstep::sim::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What a rank does when it makes a group that is checked.
const std::string kJoin = "echo $RANK $$ 1 >> $F/joined; ";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Launch, RanksThatEndWellAndWereCheckedAreOk) {
  const Folder folder;
  Launched run(folder, shell(folder, 3, kJoin + "exit 0"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.verdict()["verdict"], "ok");
  EXPECT_EQ(run.verdict()["cause"], "3 ranks ended well");
}

TEST(Launch, NothingCheckedIsAVerdict) {
  for (const auto& num_ranks : {std::optional(2), std::optional(1), std::optional<int>()}) {
    const Folder folder;
    Launched run(folder, shell(folder, num_ranks, "exit 0"));
    EXPECT_EQ(run.wait(), 17);
    EXPECT_EQ(run.verdict()["verdict"], "unchecked");
  }
  const Folder folder;
  auto options = shell(folder, 2, "exit 0");
  options.check = "off";
  EXPECT_EQ(Launched(folder, options).wait(), 0) << "nobody asked for a check";
}

TEST(Launch, WhatToDoWhenNothingWasCheckedDependsOnTheLanguage) {
  const Folder folder;
  Launched run(folder, shell(folder, 2, "exit 0"));
  EXPECT_EQ(run.wait(), 17);
  EXPECT_TRUE(has(run.verdict()["hint"], "LOCKSTEP_BACKEND"));
  auto options = shell(folder, 2, "");
  options.argv = {"sh", "-c", "exit 0", "train.py"};
  Launched python(folder, options);
  EXPECT_EQ(python.wait(), 17);
  EXPECT_TRUE(has(python.verdict()["cause"], "see the ranks' warnings")) << python.verdict();
}

TEST(Launch, WhatIsWorthKnowingOfARunThatEndedWellIsNoted) {
  const Folder folder;
  Launched run(folder, shell(folder, 2, kJoin + "echo call sites differ > $F/notes"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.verdict()["notes"], VerdictJson({"call sites differ"}));
}

TEST(Launch, TheDocumentHasTheCommandLine) {
  const Folder folder;
  auto options = shell(folder, 2, kJoin);
  options.command_line = {"lockstep", "sim", "-n", "2", "--", "./train", "a b"};
  Launched run(folder, options);
  run.wait();
  EXPECT_EQ(run.verdict()["command"], VerdictJson(options.command_line));
}

TEST(Launch, LabelsEachLineAndKeepsStdoutAndStderrApart) {
  const Folder folder;
  Launched run(folder, shell(folder, 2, kJoin + "echo out $RANK; echo err $RANK >&2; printf 'no end'"));
  EXPECT_EQ(run.wait(), 0);
  for (const std::string rank : {"0", "1"}) {
    EXPECT_TRUE(has(run.output(), "[rank " + rank + "] out " + rank + "\n")) << run.output();
    EXPECT_TRUE(has(run.output(), "[rank " + rank + "] no end\n")) << run.output();
    EXPECT_TRUE(has(run.errors(), "[rank " + rank + "] err " + rank + "\n")) << run.errors();
  }
}

TEST(Launch, ColoursLabelsAndLeavesStdoutToTheDocumentWhenAsked) {
  const Folder folder;
  auto options = shell(folder, 2, kJoin + "echo hello");
  options.colour = true;
  options.stdout_to_stderr = true;
  Launched run(folder, options);
  run.wait();
  EXPECT_EQ(run.output(), "");
  EXPECT_TRUE(has(run.errors(), "\033[36m[rank 0] \033[0mhello\n")) << run.errors();
  EXPECT_TRUE(has(run.errors(), "\033[33m[rank 1] \033[0mhello\n")) << run.errors();
}

TEST(Launch, WritesOneFilePerRank) {
  const Folder folder;
  auto options = shell(folder, 2, kJoin + "echo out $RANK; echo err $RANK >&2");
  options.output = RankOutput::files;
  options.log_folder = folder.path();
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.output(), "");
  const auto log = text_of(folder.file("rank1.log"));
  EXPECT_TRUE(has(log, "out 1\n") && has(log, "err 1\n")) << log;
  EXPECT_FALSE(std::filesystem::exists(folder.file("rank1.log.part")));
}

TEST(Launch, GivesRanksTheirPlaceAsTorchrunDoes) {
  const Folder folder;
  auto options = shell(folder, 2, kJoin + "env > $F/env$RANK");
  options.environment["LOCKSTEP_BACKEND"] = "gloo";
  options.environment["OMP_NUM_THREADS"] = "3";
  options.stall = milliseconds(2500);
  options.strict_places = true;
  EXPECT_EQ(Launched(folder, options).wait(), 0);
  const auto variables = "\n" + text_of(folder.file("env1"));
  for (const std::string line :
       {"RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "LOCKSTEP_SIM=1",
        "LOCKSTEP_BACKEND=checked:gloo", "LOCKSTEP_CHECK=full", "OMP_NUM_THREADS=3",
        R"(LOCKSTEP_SIM_SPEC={"launched":true,"strict_places":true,"stall_s":2.5})"}) {
    EXPECT_TRUE(has(variables, "\n" + line + "\n")) << line << " is not in" << variables;
  }
  EXPECT_TRUE(has(variables, "\nMASTER_PORT=2") || has(variables, "\nMASTER_PORT=3"));
  EXPECT_TRUE(has(variables, "sim-"));
}

TEST(Launch, ARankThatFailsIsNamedWithItsCodeAndItsLastLines) {
  const Folder folder;
  const auto begin = steady_clock::now();
  Launched run(
      folder,
      shell(folder, 3,
            kJoin + "[ $RANK = 1 ] || exec sleep 100; for i in $(seq 30); do echo line $i >&2; done; "
                    "printf '{\"kind\": \"ValueError\", \"message\": \"planted\"}' >/dev/fd/$LOCKSTEP_REPORT_FD; "
                    "exit 3"));
  EXPECT_EQ(run.wait(), 12);
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(8));
  const auto verdict = run.verdict();
  EXPECT_EQ(verdict["verdict"], "rank_failed");
  EXPECT_EQ(verdict["cause"], "rank 1 ended with exit code 3: ValueError: planted");
  EXPECT_EQ(verdict["first"], 1);
  const auto& rank = verdict["ranks"][1];
  EXPECT_EQ(rank["state"], "failed");
  EXPECT_EQ(rank["exit_code"], 3);
  ASSERT_EQ(rank["stderr"].size(), 20U);
  EXPECT_EQ(rank["stderr"].back(), "line 30");
  EXPECT_EQ(verdict["ranks"][0]["state"], "running");
  EXPECT_TRUE(has(text_of(folder.file("imposed")), "rank_failed")) << "the others are told";
}

TEST(Launch, ARankThatASignalEndsIsNamedWithIt) {
  const Folder folder;
  Launched run(folder, shell(folder, 2, kJoin + "[ $RANK = 0 ] || exit 0; kill -SEGV $$"));
  EXPECT_EQ(run.wait(), 12);
  EXPECT_EQ(run.verdict()["cause"], "rank 0 was ended by signal 11 (Segmentation fault)");
  EXPECT_EQ(run.verdict()["ranks"][0]["signal"], SIGSEGV);
  EXPECT_TRUE(text_of(folder.file("signals")).ends_with(" 11\n")) << "the ranks' monitors are told";
}

TEST(Launch, ARankThatEndsWellBeforeTheOthersMakeAGroupIsToldOf) {
  const Folder folder;
  auto options = shell(folder, 2, "[ $RANK = 1 ] || exec sleep 100");
  options.timeout = std::chrono::seconds(7);
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 14);
  EXPECT_NE(run.errors().find("rank 1 has ended well before it made a group"), std::string::npos) << run.errors();
  EXPECT_TRUE(std::filesystem::exists(folder.file("ended1"))) << "the ranks' monitors are told";
  EXPECT_FALSE(std::filesystem::exists(folder.file("ended0")));
}

TEST(Launch, TheVerdictOfTheRanksThemselvesGoesFirst) {
  const Folder folder;
  Launched run(folder,
               shell(folder, 2,
                     kJoin + "trap '' TERM; if [ $RANK = 1 ]; then sleep 0.3; "
                             "echo '{\"verdict\": \"mismatch\", \"cause\": \"planted\", \"since_stall_s\": 0.5, "
                             "\"ranks\": [{\"rank\": 0, \"state\": \"failed\"}]}' > $F/v; "
                             "mv $F/v $F/verdict; sleep 100; else exit 3; fi"));
  EXPECT_EQ(run.wait(), 11);
  EXPECT_EQ(run.verdict()["cause"], "planted");
  EXPECT_EQ(run.verdict()["ranks"][0]["exit_code"], 3);
  EXPECT_FALSE(std::filesystem::exists(folder.file("imposed")));
}

TEST(Launch, ARunThatPassesItsLimitIsEndedAndTheOneThatDoesNotWaitIsNamed) {
  const Folder folder;
  std::ofstream(folder.file("standing0")) << R"({"rank": 0, "state": "blocked", "op": "barrier"})";
  auto options = shell(folder, 2, kJoin + "exec sleep 100");
  options.timeout = milliseconds(300);
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 14);
  EXPECT_EQ(run.verdict()["verdict"], "straggler");
  EXPECT_EQ(run.verdict()["cause"], "the run passed the limit that was set for it, 0.3 s");
  EXPECT_EQ(run.verdict()["ranks"][0]["op"], "barrier");
  EXPECT_EQ(run.verdict()["hint"], "All wait but rank 1: look at what that one does.");
  EXPECT_FALSE(run.verdict().contains("first")) << "a limit proves nothing about a rank";
}

TEST(Launch, WhatRanksLeaveBehindIsListedAndEnded) {
  const Folder folder;
  Launched run(folder, shell(folder, 2,
                             kJoin + "[ $RANK = 0 ] || { setsid sleep 1234 > /dev/null 2>&1 & "
                                     ": > /dev/shm/left-$LOCKSTEP_JOB; }; exit 0"));
  EXPECT_EQ(run.wait(), 15);
  const auto left = run.verdict()["left"];
  ASSERT_EQ(left.size(), 2U) << left;
  EXPECT_TRUE(has(left[0], "sleep 1234")) << left;
  EXPECT_TRUE(has(left[1], "shared memory /dev/shm/left-")) << left;
}

TEST(Launch, AWatchedCommandsRanksAreWaitedForWhenItEndsBeforeThem) {
  const Folder folder;
  Launched run(folder,
               shell(folder, std::nullopt,
                     "for RANK in 0 1; do sh -c 'echo '$RANK' $$ 1 >> $F/joined; sleep 0.5; echo done >> $F/done' & "
                     "done; until [ $(cat $F/joined | wc -l) = 2 ]; do sleep 0.02; done"));
  EXPECT_EQ(run.wait(), 0) << run.verdict();
  EXPECT_EQ(text_of(folder.file("done")), "done\ndone\n");
}

TEST(Launch, AWatchedCommandThatFailsIsNamed) {
  const Folder folder;
  auto options = shell(folder, std::nullopt, "cat; exit 4");
  options.output = RankOutput::inherited;
  Launched run(folder, options, {.text = "what is piped in\n"});
  EXPECT_EQ(run.wait(), 12);
  EXPECT_EQ(run.verdict()["cause"], "the command ended with exit code 4");
  EXPECT_FALSE(run.verdict().contains("first"));
  EXPECT_EQ(run.output(), "what is piped in\n");
}

TEST(Launch, ABodyRunsInPlaceOfAProgram) {
  const Folder folder;
  LaunchOptions options{.num_ranks = 3, .environment = own_environment()};
  options.body = [&folder](int rank, const Variables& variables) {
    std::ofstream(folder.file("joined"), std::ios::app) << rank << " " << getpid() << " 1\n";
    std::printf("%s of %s\n", variables.at("RANK").c_str(), variables.at("WORLD_SIZE").c_str());
    return rank == 2 ? 5 : 0;
  };
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 12);
  EXPECT_EQ(run.verdict()["cause"], "rank 2 ended with exit code 5");
  EXPECT_TRUE(has(run.output(), "[rank 1] 1 of 3\n")) << run.output();
}

TEST(Launch, AnExceptionThatLeavesABodyIsItsReport) {
  const Folder folder;
  LaunchOptions options{.num_ranks = 1, .environment = own_environment()};
  options.body = [](int, const Variables&) -> int { throw std::out_of_range("planted"); };
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 12);
  EXPECT_EQ(run.verdict()["cause"], "rank 0 ended with exit code 1: IndexError: planted");
}

std::string refusal_of(LaunchOptions options) {
  const Folder folder;
  options.environment = own_environment();
  Launched run(folder, std::move(options));
  EXPECT_EQ(run.wait(), 2);
  return run.error();
}

TEST(Launch, RefusesWhatCannotBeRun) {
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2}), "expected a program"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 0, .argv = {"true"}}), "1 to 256 ranks, got 0"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 100000, .argv = {"true"}}), "1 to 256 ranks, got 100000"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2, .argv = {"/no/such"}}), "/no/such (No such file or directory)"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2, .argv = {"no-such-program"}}), "'no-such-program', which is not there"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2, .argv = {"/tmp"}}), "a folder"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2, .argv = {"/etc/passwd"}}), "not executable"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2, .argv = {"true"}, .check = "sampled:0"}), "sampled:N"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2, .argv = {"true"}, .timeout = milliseconds(0)}), "for the run, got 0 ms"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2, .argv = {"true"}, .stall = milliseconds(-1)}), "stall, got -1 ms"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2, .argv = {"true"}, .device_memory_bytes = 0}), "got 0 bytes"));
  EXPECT_TRUE(has(refusal_of({.num_ranks = 2, .argv = {"true"}, .debugged = DebuggedRank{.rank = 2}}), "2 of 2"));
  EXPECT_TRUE(has(refusal_of({.argv = {"true"}, .debugged = DebuggedRank{}}), "-n"));
}

TEST(Launch, RefusesLaunchersAsRanksAndSaysHow) {
  for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{
           {"torchrun", "train.py"}, {"/usr/bin/mpirun", "x"}, {"python3", "-u", "-m", "torch.distributed.run"}}) {
    const auto text = refusal_of({.num_ranks = 2, .argv = argv});
    EXPECT_TRUE(has(text, "which starts ranks by itself. Leave -n out")) << text;
  }
}

TEST(Launch, WhatAProgramRefusesToRunIsBadInput) {
  const Folder folder;
  Launched run(folder, shell(folder, 3,
                             "printf '{\"kind\": \"refused\", \"message\": \"--function: planted\"}' "
                             ">/dev/fd/$LOCKSTEP_REPORT_FD; exit 2"));
  EXPECT_EQ(run.wait(), 2);
  EXPECT_EQ(run.error(), "--function: planted");
}

TEST(Launch, AProgramThatTheSystemRefusesIsBadInput) {
  const Folder folder;
  std::ofstream(folder.file("program")) << "\x7f"
                                           "ELF and nothing more";
  chmod(folder.file("program").c_str(), 0700);
  const auto text = refusal_of({.num_ranks = 2, .argv = {folder.file("program")}});
  EXPECT_TRUE(has(text, "Exec format error")) << text;
}

}  // namespace
}  // namespace lockstep::sim::test
