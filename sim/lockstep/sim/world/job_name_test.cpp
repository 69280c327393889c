#include "lockstep/sim/world/job_name.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "lockstep/sim/check/board.h"
#include "lockstep/sim/check/process.h"
#include "lockstep/sim/world/test_support/launched.h"

namespace lockstep::sim::test {
namespace {

// What a job was named whose launcher, a child of ours, has ended.
std::string name_of_dead_job() {
  int name[2];
  if (pipe(name) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    const auto job = new_job_name(own_environment());
    _exit(write(name[1], job.data(), job.size()) > 0 ? 0 : 1);
  }
  waitpid(child, nullptr, 0);
  std::string job(512, '\0');
  job.resize(static_cast<std::size_t>(std::max(read(name[0], job.data(), job.size()), ssize_t{0})));
  close(name[0]);
  close(name[1]);
  return job;
}

TEST(JobName, IsNobodyElsesAndStandsWithinTheOuterJob) {
  EXPECT_NE(name_of_dead_job(), name_of_dead_job());
  EXPECT_TRUE(new_job_name({{"LOCKSTEP_JOB", "outer"}}).starts_with("outer-sim-" + std::to_string(getpid()) + "-"));
  EXPECT_TRUE(new_job_name({}).starts_with("sim-"));
}

TEST(DeadJobs, LeaveNothing) {
  const auto job = name_of_dead_job();
  Board::create(job, 2);
  std::ofstream("/dev/shm/of-its-program." + job) << "x";
  remove_shared_memory_of_dead_jobs();
  EXPECT_TRUE(Board::names_of(job).empty());
  EXPECT_FALSE(std::filesystem::exists("/dev/shm/of-its-program." + job));
}

TEST(DeadJobs, AreNotThoseOfALivingLauncher) {
  const auto job = new_job_name(own_environment());
  const auto board = Board::create(job, 2);
  remove_shared_memory_of_dead_jobs();
  EXPECT_EQ(Board::names_of(job).size(), 1U);
  Board::remove_name(board->name());
}

TEST(DeadJobs, AreNotThoseOfALivingRank) {
  const auto job = name_of_dead_job();
  const auto board = Board::create(job, 2);
  board->seat(1).pid = getpid();
  board->seat(1).start_time = start_time_of(getpid()).value();
  remove_shared_memory_of_dead_jobs();
  EXPECT_EQ(Board::names_of(job).size(), 1U);
  ++board->seat(1).start_time;  // somebody else had our number
  remove_shared_memory_of_dead_jobs();
  EXPECT_TRUE(Board::names_of(job).empty());
}

TEST(DeadJobs, AreNotThoseOfAnotherNamespaceNorOfNoLauncher) {
  auto elsewhere = name_of_dead_job();
  elsewhere.back() = elsewhere.back() == '1' ? '2' : '1';
  for (const auto& job : {elsewhere, "by-hand-" + std::to_string(getpid())}) {
    const auto board = Board::create(job, 1);
    remove_shared_memory_of_dead_jobs();
    EXPECT_EQ(Board::names_of(job).size(), 1U);
    Board::remove_name(board->name());
  }
}

TEST(DeadJobs, AreTidiedUpAfterByTheNextRun) {
  const auto job = name_of_dead_job();
  Board::create(job, 2);
  const Folder folder;
  Launched(folder, shell(folder, 1, "exit 0")).wait();
  EXPECT_TRUE(Board::names_of(job).empty());
}

}  // namespace
}  // namespace lockstep::sim::test
