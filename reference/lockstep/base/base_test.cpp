#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/exit_code.h"
#include "lockstep/base/logging.h"
#include "lockstep/base/words.h"
#include "lockstep/base/world.h"

namespace lockstep {
namespace {

TEST(Problem, ReadsAsOneSentencePerPart) {
  EXPECT_EQ(to_text(Problem{.where = "f", .expected = "1", .got = "2", .fix = "Do g."}), "f: expected 1, got 2. Do g.");
  EXPECT_EQ(to_text(Problem{.where = "f", .got = "2"}), "f: got 2");
  EXPECT_EQ(to_text(Problem{.where = "f", .expected = "1"}), "f: expected 1");
}

TEST(Errors, CarryTheKindOfTheSpec) {
  EXPECT_EQ(InvalidArgument("x").kind(), "ValueError");
  EXPECT_EQ(CollectiveMismatch("x").kind(), "DistributedOperationException");
  EXPECT_EQ(RankLost(3, "ended by signal 9", "allreduce #4").kind(), "RuntimeError");
  EXPECT_EQ(kind_of(std::out_of_range("x")), "IndexError");
  EXPECT_EQ(kind_of(std::runtime_error("x")), "RuntimeError");
}

TEST(RankLost, NamesTheRankAndTheCause) {
  const RankLost lost(3, "ended by signal 9", "allreduce #4");
  EXPECT_STREQ(lost.what(), "rank 3 was lost: ended by signal 9 (noticed in allreduce #4)");
  EXPECT_EQ(lost.rank(), 3);
}

TEST(RelayedError, NamesTheRankWhoseErrorItIs) {
  const RelayedError relayed("IndexError", 0, "no third item", "reading for all");
  EXPECT_STREQ(relayed.what(), "reading for all on rank 0 failed: no third item");
  EXPECT_EQ(relayed.kind(), "IndexError");
  EXPECT_EQ(relayed.rank(), 0);
  EXPECT_EQ(relayed.cause(), "no third item");
}

TEST(ChildFailed, PutsTheFirstCauseOnTop) {
  const ChildFailed failed(
      {{.rank = 1, .kind = "signal", .signal = 9}, {.rank = 0, .kind = "RuntimeError", .message = "m"}});
  EXPECT_STREQ(failed.what(), "rank 1: ended by signal 9 (Killed)\nand, after it:\n  rank 0: RuntimeError: m");
  EXPECT_EQ(failed.first().rank, 1);
}

TEST(Brief, DropsTheStackThatLibTorchAppends) {
  EXPECT_EQ(brief(std::runtime_error("bad shape\nException raised from f at g.cpp:1\nframe #0: x")), "bad shape");
}

TEST(World, IsCheckedWithAMessageThatSaysWhatToDo) {
  EXPECT_NO_THROW(checked({.rank = 3, .size = 4}, "test"));
  try {
    checked({.rank = 4, .size = 4}, "test");
    FAIL() << "rank 4 of 4 was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "test: expected a rank from 0 to 3, got rank 4 in a world of 4. "
                 "Give each process its own RANK, counted from 0, below WORLD_SIZE.");
  }
  EXPECT_THROW(checked({.rank = 0, .size = 0}, "test"), InvalidArgument);
  EXPECT_THROW(checked({.rank = -1, .size = 2}, "test"), InvalidArgument);
}

TEST(Log, PrefixesTheRankAndObeysTheLevel) {
  const auto before = log::settings();
  log::set_settings({.level = log::Level::warning, .rank = 2});
  testing::internal::CaptureStderr();
  log::info("not shown");
  log::warning("shown {}");  // braces are text, never a format
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[rank 2] warning: shown {}\n");
  log::set_settings(before);
}

TEST(Log, LevelsAreReadInAnyCaseAndAnUnknownOneIsRefusedWithTheList) {
  EXPECT_EQ(log::level_from("debug"), log::Level::debug);
  EXPECT_EQ(log::level_from("WARNING"), log::Level::warning);
  EXPECT_EQ(log::level_from("Off"), log::Level::off);
  try {
    log::level_from("Loud", "environment variable LOCKSTEP_LOG_LEVEL");
    FAIL() << "an unknown level was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "environment variable LOCKSTEP_LOG_LEVEL: expected debug, info, warning, error or off, got 'Loud'");
  }
}

TEST(Words, TheNearestTakesTheFewestChanges) {
  EXPECT_EQ(nearest("evn", {"sim", "env", "bench"}), "env");
  EXPECT_EQ(nearest("", {"bench", "env"}), "env");
  EXPECT_EQ(nearest("same", {"same", "some"}), "same");
}

}  // namespace
}  // namespace lockstep
