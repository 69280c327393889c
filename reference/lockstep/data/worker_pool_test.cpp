// Free of LibTorch, so that a thread checker can run it: the payload is an int.
#include "lockstep/data/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <set>
#include <stdexcept>

#include "lockstep/data/thread_counter.h"

namespace lockstep::data {
namespace {

using namespace std::chrono_literals;
using test::ThreadCounter;
using IntPool = WorkerPool<int, int>;

// Submits 0 ... count-1 as a loader does, ahead of the taker, and takes them all.
std::vector<int> run_all(IntPool& pool, int count) {
  std::vector<int> taken;
  for (int submitted = 0;;) {
    while (submitted < count && !pool.is_full()) pool.submit(submitted++);
    if (pool.is_empty()) return taken;
    taken.push_back(pool.take());
  }
}

TEST(WorkerPool, HandsOutResultsInTheOrderOfTheJobsThoughLaterOnesFinishFirst) {
  IntPool pool({.num_workers = 4}, [](int job) {
    std::this_thread::sleep_for(job % 4 == 0 ? 5ms : 0ms);
    return 10 * job;
  });
  const auto taken = run_all(pool, 40);
  ASSERT_EQ(taken.size(), 40u);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(taken[static_cast<std::size_t>(i)], 10 * i);
}

TEST(WorkerPool, LetsWorkersRunAtTheSameTime) {
  std::latch all_here(3);
  IntPool pool({.num_workers = 3, .prefetch_factor = 1}, [&all_here](int job) {
    all_here.arrive_and_wait();  // passed only if three jobs are under way at once
    return job;
  });
  EXPECT_EQ(run_all(pool, 3), (std::vector<int>{0, 1, 2}));
}

TEST(WorkerPool, IsNeverMoreThanWorkersTimesPrefetchFactorAhead) {
  std::atomic<int> begun{0};
  IntPool pool({.num_workers = 2, .prefetch_factor = 3}, [&begun](int job) {
    ++begun;
    return job;
  });
  int submitted = 0;
  while (!pool.is_full()) pool.submit(submitted++);
  EXPECT_EQ(submitted, 6);
  for (int taken = 1; taken <= 20; ++taken) {
    pool.take();
    EXPECT_FALSE(pool.is_full());
    pool.submit(submitted++);
    EXPECT_TRUE(pool.is_full());
    EXPECT_LE(begun, taken + 6);
  }
}

TEST(WorkerPool, ThrowsTheExceptionOfAJobWhereItsResultBelongs) {
  IntPool pool({.num_workers = 3}, [](int job) {
    if (job == 2) throw std::out_of_range("job 2");
    return job;
  });
  for (int job = 0; job < 5; ++job) pool.submit(job);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_THROW(pool.take(), std::out_of_range);
  EXPECT_EQ(pool.take(), 3);
  EXPECT_EQ(pool.take(), 4);
  EXPECT_TRUE(pool.is_empty());
}

TEST(WorkerPool, EndsItsThreadsWhenLeftEarlyAndDropsJobsThatNobodyBegan) {
  ThreadCounter threads;
  std::atomic<int> done{0};
  {
    IntPool pool({.num_workers = 2, .prefetch_factor = 50, .start_thread = threads.starter()}, [&done](int job) {
      std::this_thread::sleep_for(2ms);
      ++done;
      return job;
    });
    for (int job = 0; job < 100; ++job) pool.submit(job);
    EXPECT_EQ(pool.take(), 0);
    EXPECT_EQ(threads.started, 2);
  }
  EXPECT_EQ(threads.running, 0);
  EXPECT_LT(done, 100);
}

TEST(WorkerPool, EndsItsThreadsAfterAnExceptionAndWhenNoJobEverCame) {
  ThreadCounter threads;
  const auto fail_on_first = [&threads] {
    IntPool pool({.num_workers = 2, .start_thread = threads.starter()},
                 [](int) -> int { throw std::runtime_error("job"); });
    pool.submit(0);
    pool.submit(1);
    pool.take();
  };
  EXPECT_THROW(fail_on_first(), std::runtime_error);
  EXPECT_EQ(threads.running, 0);
  {
    const IntPool idle({.num_workers = 3, .start_thread = threads.starter()}, [](int job) { return job; });
  }
  EXPECT_EQ(threads.started, 5);
  EXPECT_EQ(threads.running, 0);
}

TEST(WorkerPool, EndsTheThreadsItHasWhenAnotherCannotBeStarted) {
  ThreadCounter threads;
  const auto second_fails = [&threads, start = threads.starter()](std::function<void()> body) {
    if (threads.started == 1) throw std::runtime_error("no more threads");
    return start(std::move(body));
  };
  EXPECT_THROW(IntPool({.num_workers = 2, .start_thread = second_fails}, [](int job) { return job; }),
               std::runtime_error);
  EXPECT_EQ(threads.started, 1);
  EXPECT_EQ(threads.running, 0);
}

TEST(WorkerPool, TellsEachWorkerWhoItIsBeforeItsFirstJob) {
  std::mutex mutex;
  std::vector<WorkerInfo> told;
  std::latch all_here(2);
  const auto init = [&](const WorkerInfo& who) {
    const std::lock_guard lock(mutex);
    told.push_back(who);
  };
  IntPool pool({.num_workers = 2, .prefetch_factor = 1, .seed = 40, .worker_init = init}, [&](int job) {
    all_here.arrive_and_wait();
    return job;
  });
  run_all(pool, 2);
  std::set<std::pair<int, std::int64_t>> ids_and_seeds;
  for (const auto& who : told) {
    EXPECT_EQ(who.num_workers, 2);
    ids_and_seeds.emplace(who.id, who.seed);
  }
  EXPECT_EQ(ids_and_seeds, (std::set<std::pair<int, std::int64_t>>{{0, 40}, {1, 41}}));
}

TEST(WorkerPool, ThrowsTheExceptionOfWorkerInitAtTheFirstJob) {
  IntPool pool({.num_workers = 1, .worker_init = [](const WorkerInfo&) { throw std::runtime_error("init"); }},
               [](int job) { return job; });
  pool.submit(0);
  EXPECT_THROW(pool.take(), std::runtime_error);
}

TEST(WorkerPool, SaysWhichBatchDidNotComeInTimeAndDoesNotWaitForItsWorker) {
  ThreadCounter threads;
  std::latch release(1);
  std::string message;
  {
    IntPool pool({.num_workers = 2, .timeout = 300ms, .start_thread = threads.starter()}, [&release](int job) {
      if (job == 1) release.wait();
      return job;
    });
    pool.submit(0);
    pool.submit(1);
    EXPECT_EQ(pool.take(), 0);
    try {
      pool.take();
      FAIL() << "a job that never ends was taken";
    } catch (const Timeout& error) {
      message = error.what();
    }
  }
  EXPECT_EQ(message,
            "data loader: expected batch 1 of the pass within 300 ms, got none from its worker. "
            "Raise timeout, or look at what the dataset waits for.");
  EXPECT_EQ(threads.running, 1);  // the pool is gone, the stuck worker is not
  release.count_down();
  while (threads.running != 0) std::this_thread::yield();
}

TEST(WorkerPool, RefusesToHaveNoWorkers) {
  EXPECT_THROW(IntPool({.num_workers = 0}, [](int job) { return job; }), InvalidArgument);
  EXPECT_THROW(IntPool({.prefetch_factor = 0}, [](int job) { return job; }), InvalidArgument);
}

}  // namespace
}  // namespace lockstep::data
