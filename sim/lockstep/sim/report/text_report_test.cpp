#include "lockstep/sim/report/text_report.h"

#include <gtest/gtest.h>

#include "lockstep/sim/report/verdicts_test_support.h"

namespace lockstep::sim::report {
namespace {

void expect_holds(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in\n" << text;
}

TEST(TextReport, TellsADeadlock) {
  EXPECT_EQ(to_text(deadlock_verdict()),
            R"(deadlock: rank 1 waits in barrier #4 for rank 0, which waits in allreduce #4 for rank 1

  ranks  state    in                     step  at                   of
  0      blocked  allreduce #4 of world  3     train.cpp:41 (step)  fc1.weight, fc1.bias
  1, 2   blocked  barrier #4 of world    3     train.cpp:57 (step)

Who waits for whom:
  rank 0 (allreduce #4 of world) -> rank 1 (barrier #4 of world) -> rank 0
  rank 2 (barrier #4 of world) -> rank 0 (allreduce #4 of world)

It began at rank 0. Found 0.21 s after it began. The seed was 7.
note: different call sites: train.cpp:41, train.cpp:57
hint: Compare the ways of the ranks to these places.
to run it again: lockstep sim replay lockstep-runs/1
)");
}

TEST(TextReport, PutsTheCallsOfAMismatchSideBySide) {
  EXPECT_EQ(to_text(mismatch_verdict()),
            R"(mismatch: rank 1 calls broadcast #4; ranks 0, 2 call allreduce #4

  ranks  state    in                                 step  at
  0, 2   blocked  allreduce #4 of world              3     train.cpp:41 (step)
  1      blocked  broadcast #4 with root 0 of world  3     train.cpp:43 (step)

What they call:
  ranks 0, 2  allreduce #4 of world  float32 [2, 3]  sum          at train.cpp:41 (step)
  rank 1      broadcast #4 of world  float32 [2, 3]       root 0  at train.cpp:43 (step)
  They differ in operation, reduction and peer.

It began at rank 1.
)");
}

TEST(TextReport, SaysWhyARankFailed) {
  const auto text = to_text(rank_failed_verdict());
  EXPECT_EQ(text.rfind("rank_failed: rank 2 failed: RuntimeError: out of patience\n", 0), 0U) << text;
  expect_holds(text, "\nrank 2: RuntimeError: out of patience, at train.cpp:12 (train), exit code 3\n");
  expect_holds(text, "\n  | what(): out of patience\n");
  expect_holds(text, "\n  ranks 0, 1 (allreduce #4 of world) -> rank 2 (failed)\n");
}

TEST(TextReport, SaysNothingOfATimeThatNobodyMeasured) {
  auto verdict = rank_failed_verdict();
  verdict.since_stall_s = 0;
  EXPECT_EQ(to_text(verdict).find("after it began"), std::string::npos);
}

TEST(TextReport, NamesAStraggler) {
  const auto text = to_text(straggler_verdict());
  expect_holds(text, "\n  1      running  after allreduce #3 of world  2 ");
  expect_holds(text, "\n  rank 0 (allreduce #4 of world) -> rank 1 (running)\n");
}

TEST(TextReport, IsShortWhereThereIsLittleToSay) {
  EXPECT_EQ(to_text(unchecked_verdict()),
            "unchecked: no rank ever made a group that is checked\n\nhint: Make the groups through Lockstep.\n");
  EXPECT_EQ(to_text(interrupted_verdict()),
            "interrupted: interrupted by signal 2 (Interrupt)\n\n  ranks  state\n  0, 1   running\n");
  EXPECT_EQ(to_text(verdict_of(Outcome::ok, "3 ranks ended well")), "ok: 3 ranks ended well\n");
}

TEST(TextReport, ListsWhatWasLeftBehind) {
  auto verdict = verdict_of(Outcome::left_behind, "a process was still there");
  verdict.left = {"process 7: sleep 100"};
  expect_holds(to_text(verdict), "\nLeft behind:\n  process 7: sleep 100\n");
}

TEST(TextReport, SaysHowToGetLines) {
  auto verdict = deadlock_verdict();
  verdict.ranks[1].place =
      Place{.file = "", .line = 0, .function = "step", .module = "train", .offset = 0x1234, .remark = ""};
  const auto text = to_text(verdict);
  expect_holds(text, "  train+0x1234 (step)");
  expect_holds(text, "\nhint: Build with -g1 for file and line");
}

TEST(TextReport, DescribesACallWithoutAPlace) {
  auto verdict = straggler_verdict();
  verdict.ranks[0].place.reset();
  verdict.ranks[0].phase = "backward";
  verdict.ranks[0].label = {"a", "b", "c", "d", "e"};
  const auto text = to_text(verdict);
  expect_holds(text, "  backward of step 3 ");
  expect_holds(text, "  a, b, c and 2 more\n");
}

TEST(TextReport, NamesThePartnersOfPointToPointCalls) {
  auto verdict = mismatch_verdict();
  verdict.ranks.resize(2);
  verdict.ranks[0].op = "send";
  verdict.ranks[0].peer = 1;
  verdict.ranks[0].seq = 1;
  verdict.ranks[1].op = "recv";
  verdict.ranks[1].shapes = {{3}, {}};
  const auto text = to_text(verdict);
  expect_holds(text, "  send #1 to rank 1 of world ");
  expect_holds(text, "  recv #4 from rank 0 of world ");
  expect_holds(text, "rank 1  recv #4 of world  float32 [3], float32 []");
  expect_holds(text, "\n  They differ in tensors.\n");  // a send and its receive differ in the rest by nature
}

TEST(TextReport, TellsTheNotesOfARunThatEndedWell) {
  auto verdict = verdict_of(Outcome::ok, "3 ranks ended well");
  verdict.notes = {"call sites differ: allreduce #3", "5 calls were not compared"};
  EXPECT_EQ(to_text(verdict),
            "ok: 3 ranks ended well\n\nnote: call sites differ: allreduce #3\nnote: 5 calls were not compared\n");
}

TEST(TextReport, EndsWithTheCommandLineAsAShellTakesIt) {
  auto verdict = unchecked_verdict();
  verdict.command = {"/opt/bin/lockstep", "sim", "-n", "3", "--", "./train", "", "a b", "it's", "$x", "l=1e-3", "~"};
  EXPECT_EQ(to_text(verdict),
            "unchecked: no rank ever made a group that is checked\n\nhint: Make the groups through Lockstep.\n"
            "command: lockstep sim -n 3 -- ./train '' 'a b' 'it'\\''s' '$x' l=1e-3 '~'\n");
  verdict.command = {"lockstep", "a\n'\\\033"};
  expect_holds(to_text(verdict), "\ncommand: lockstep $'a\\012\\'\\\\\\033'\n");
  verdict.outcome = Outcome::ok;
  EXPECT_EQ(to_text(verdict).find("command:"), std::string::npos);
}

TEST(TextReport, ColoursOnRequestAlone) {
  EXPECT_EQ(to_text(deadlock_verdict()).find('\033'), std::string::npos);
  const auto text = to_text(deadlock_verdict(), {.colour = true});
  EXPECT_EQ(text.rfind("\033[31mdeadlock:\033[0m \033[1mrank 1 waits", 0), 0U);
  // Colours take no width.
  expect_holds(text, "  1, 2   \033[33mblocked\033[0m  barrier #4 of world    3 ");
}

// A program's texts do not command the terminal, and do not break the lines.
TEST(TextReport, ShowsNoControlCharacters) {
  auto verdict = rank_failed_verdict();
  verdict.cause = "a\nb\033[2Jc";
  verdict.ranks[2].errors = {"x\ry\a"};
  verdict.ranks[0].label = {"n\n\n"};
  verdict.left = {"\033]0;title\a"};
  for (const char c : to_text(verdict)) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_EQ(to_text(verdict).rfind("rank_failed: a b?[2Jc\n", 0), 0U);
}

}  // namespace
}  // namespace lockstep::sim::report
