// However the visible process or the guardian ends, everything that the ranks are and have started ends within 2 s.
// Once each; --gtest_repeat=50 for the long form.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "lockstep/launch/descriptor.h"
#include "lockstep/sim/world/processes.h"
#include "lockstep/sim/world/test_support/fake_job_view.h"
#include "lockstep/sim/world/test_support/launched.h"

namespace lockstep::sim::test {
namespace {

constexpr int kRanks = 2;
constexpr double kLimitS = 2;

// Ranks that no polite signal ends, and each of them has a daemon in a session of its own, and shared memory.
const std::string kStubborn =
    "trap '' INT TERM HUP QUIT; (setsid sh -c 'sleep 1000 & sleep 1000' > /dev/null 2>&1 &) ; "
    ": > /dev/shm/$LOCKSTEP_JOB.$RANK; echo $LOCKSTEP_JOB > $F/job; echo $RANK $$ 1 >> $F/joined; "
    "while :; do sleep 1000; done";

std::size_t num_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

class Interrupt : public testing::Test {
 protected:
  // Starts the launcher, and waits until each rank is as stubborn as it gets.
  pid_t start(Launched& launched) {
    EXPECT_TRUE(holds_soon([&] { return num_lines(text_of(folder_.file("joined"))) == kRanks; }));
    const pid_t guardian = launched.guardian();
    EXPECT_GT(guardian, 0);
    EXPECT_EQ(names_of_job().size(), static_cast<std::size_t>(kRanks));
    return guardian;
  }

  // That of this run: the processes below us, the shared memory, and what is in the folder for temporary files.
  void expect_nothing_is_left() {
    EXPECT_LT(seconds_until_nothing_lives(), kLimitS);
    EXPECT_TRUE(names_of_job().empty());
    EXPECT_EQ(names_in(std::filesystem::temp_directory_path()), temporary_before_);
  }

  std::vector<std::string> names_of_job() {
    auto job = text_of(folder_.file("job"));
    if (!job.empty()) job.pop_back();
    auto names = names_in("/dev/shm");
    std::erase_if(names, [&job](const auto& name) { return !name.starts_with(job); });
    return names;
  }

  SubreaperScope subreaper_;
  Folder folder_;
  std::vector<std::string> temporary_before_ = names_in(std::filesystem::temp_directory_path());
};

class InterruptBy : public Interrupt, public testing::WithParamInterface<int> {};

TEST_P(InterruptBy, ASignalEndsEverythingAndIsTheVerdict) {
  Launched launched(folder_, shell(folder_, kRanks, kStubborn));
  start(launched);
  kill(launched.pid(), GetParam());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(launched.wait(), 128 + GetParam());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1999));
  EXPECT_EQ(launched.verdict()["verdict"], "interrupted");
  EXPECT_EQ(launched.verdict()["signal"], GetParam());
  expect_nothing_is_left();
}

INSTANTIATE_TEST_SUITE_P(Signals, InterruptBy, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT),
                         [](const auto& info) { return std::string("SIG") + sigabbrev_np(info.param); });

TEST_F(Interrupt, ASecondCtrlCDoesNotWait) {
  Launched launched(folder_, shell(folder_, kRanks, kStubborn));
  start(launched);
  const auto begin = std::chrono::steady_clock::now();
  kill(launched.pid(), SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(launched.pid(), SIGINT);
  EXPECT_EQ(launched.wait(), 128 + SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900));
  expect_nothing_is_left();
}

TEST_F(Interrupt, RanksThatEndAtTheSignalAreNotKilled) {
  Launched launched(folder_, shell(folder_, kRanks,
                                   "trap 'echo told >> $F/told; exit 0' INT; echo $RANK $$ 1 >> $F/joined; "
                                   "while :; do sleep 0.05; done"));
  EXPECT_TRUE(holds_soon([&] { return num_lines(text_of(folder_.file("joined"))) == kRanks; }));
  kill(launched.pid(), SIGINT);
  EXPECT_EQ(launched.wait(), 128 + SIGINT);
  EXPECT_EQ(num_lines(text_of(folder_.file("told"))), static_cast<std::size_t>(kRanks));
}

TEST_F(Interrupt, SIGKILLOfTheVisibleProcessLeavesNothing) {
  Launched launched(folder_, shell(folder_, kRanks, kStubborn));
  start(launched);
  kill(launched.pid(), SIGKILL);
  EXPECT_EQ(launched.wait(), 128 + SIGKILL);
  expect_nothing_is_left();
}

TEST_F(Interrupt, SIGKILLOfTheGuardianLeavesNothing) {
  Launched launched(folder_, shell(folder_, kRanks, kStubborn));
  const pid_t guardian = start(launched);
  kill(guardian, SIGKILL);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(launched.wait(), 128 + SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1999));
  const auto cause = launched.verdict()["cause"].get<std::string>();
  EXPECT_NE(cause.find("was ended by signal 9 (Killed)"), std::string::npos) << cause;
  expect_nothing_is_left();
}

TEST_F(Interrupt, AtWhateverMomentItComesNothingIsLeft) {
  for (const int signal : {SIGINT, SIGKILL}) {
    for (int delay_ms = 0; delay_ms < 24; delay_ms += 2) {
      const Folder folder;
      Launched launched(folder, shell(folder, kRanks, "echo $LOCKSTEP_JOB > $F/job; exec sleep 1000"));
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
      kill(launched.pid(), signal);
      EXPECT_LT(seconds_until_nothing_lives(), kLimitS) << "after " << delay_ms << " ms";
    }
  }
}

// As under a terminal that stands still (Ctrl-S), or a pager that does not read.
TEST_F(Interrupt, AReaderThatDoesNotReadHoldsNothingUp) {
  for (const int signal : {SIGINT, SIGKILL}) {
    const Folder folder;
    auto pipe = launch::make_pipe();
    auto options = shell(folder, kRanks, "echo $RANK $$ 1 >> $F/joined; exec yes");
    options.output = RankOutput::labelled;
    Launched launched(folder, options, {.output = pipe.write.number()});
    pipe.write.reset();
    EXPECT_TRUE(holds_soon([&] { return num_lines(text_of(folder.file("joined"))) == kRanks; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until the pipes are full
    kill(launched.pid(), signal);
    EXPECT_LT(seconds_until_nothing_lives(), kLimitS);
  }
}

}  // namespace
}  // namespace lockstep::sim::test
