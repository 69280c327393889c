#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::data {

/// Starts a thread that runs the function given: the place to hand a new thread what its starter has, such as a rank's
/// context.
using ThreadStarter = std::function<std::thread(std::function<void()>)>;

inline std::thread start_plain_thread(std::function<void()> body) { return std::thread(std::move(body)); }

/// Which worker runs, as `worker_init` is told at its start.
struct WorkerInfo {
  int id = 0;
  int num_workers = 1;
  std::int64_t seed = 0;  ///< of the pass, plus the id: for a worker's own random numbers
};

struct WorkerPoolOptions {
  int num_workers = 1;
  int prefetch_factor = 2;               ///< jobs per worker that may be ahead of the taker
  std::chrono::milliseconds timeout{0};  ///< the longest that take() waits; 0: as long as it takes
  std::int64_t seed = 0;
  std::function<void(const WorkerInfo&)> worker_init;  ///< run by each worker before its first job
  ThreadStarter start_thread = start_plain_thread;
};

/// Threads that turn jobs into results, handed out in the order of the jobs.
///
/// The owner submits while the pool is not full and takes while it is not empty; only the owner's thread calls either.
/// At most num_workers * prefetch_factor jobs are submitted and not taken. An exception of a job, or of `worker_init`,
/// is thrown by the take() of that job. The destructor discards jobs that no worker has begun, waits for the others and
/// joins the threads. Only after a time-out are workers that are still busy left to end by themselves: waiting for them
/// would keep the error from its reader.
///
/// Knows nothing of tensors, so that a thread checker can run it without LibTorch.
///
/// @source PyTorch, torch.utils.data._MultiProcessingDataLoaderIter: what is in flight and in which order it comes out
template <typename Job, typename Result>
class WorkerPool {
 public:
  /// Runs on the workers, several at once.
  using Work = std::function<Result(const Job&)>;

  /// @throws InvalidArgument  unless num_workers and prefetch_factor are positive
  WorkerPool(WorkerPoolOptions options, Work work);
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  [[nodiscard]] bool is_full() const { return in_flight_.size() == max_in_flight_; }
  [[nodiscard]] bool is_empty() const { return in_flight_.empty(); }

  /// Adds a job; the pool must not be full.
  void submit(Job job);
  /// Waits for the oldest job and hands out its result, or throws its exception; the pool must not be empty.
  /// @throws Timeout  if the result is not there within `timeout`
  Result take();

 private:
  struct Ticket {
    explicit Ticket(Job what) : job(std::move(what)) {}
    Job job;
    std::optional<Result> result;
    std::exception_ptr error;
    bool done = false;  // guarded by Shared::mutex, and with it result and error
  };
  using TicketPtr = std::shared_ptr<Ticket>;

  // What the workers see. They own it together with the pool, so that one that is left behind finds it alive.
  struct Shared {
    Work work;
    std::function<void(const WorkerInfo&)> worker_init;
    std::mutex mutex;
    std::condition_variable work_to_do;
    std::condition_variable result_there;
    std::deque<TicketPtr> waiting;
    std::vector<bool> busy;  // per worker
    bool stopping = false;
  };

  static void run_worker(Shared& shared, WorkerInfo who);
  static TicketPtr wait_for_work(Shared& shared, int worker);
  static void finish(Shared& shared, Ticket& ticket, std::optional<Result> result, std::exception_ptr error);
  void stop() noexcept;

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::size_t max_in_flight_;
  std::chrono::milliseconds timeout_;
  std::deque<TicketPtr> in_flight_;  // oldest first
  std::vector<std::thread> threads_;
  std::size_t num_taken_ = 0;
  bool timed_out_ = false;
};

template <typename Job, typename Result>
WorkerPool<Job, Result>::WorkerPool(WorkerPoolOptions options, Work work)
    : max_in_flight_(static_cast<std::size_t>(options.num_workers) * static_cast<std::size_t>(options.prefetch_factor)),
      timeout_(options.timeout) {
  if (options.num_workers < 1 || options.prefetch_factor < 1) {
    throw InvalidArgument({.where = "WorkerPool",
                           .expected = "num_workers and prefetch_factor to be positive",
                           .got = "num_workers " + std::to_string(options.num_workers) + ", prefetch_factor " +
                                  std::to_string(options.prefetch_factor)});
  }
  shared_->work = std::move(work);
  shared_->worker_init = std::move(options.worker_init);
  shared_->busy.resize(static_cast<std::size_t>(options.num_workers), false);
  try {
    for (int id = 0; id < options.num_workers; ++id) {
      const WorkerInfo who{.id = id, .num_workers = options.num_workers, .seed = options.seed + id};
      threads_.push_back(options.start_thread([shared = shared_, who] { run_worker(*shared, who); }));
    }
  } catch (...) {
    stop();
    throw;
  }
}

template <typename Job, typename Result>
void WorkerPool<Job, Result>::submit(Job job) {
  LOCKSTEP_ASSERT(!is_full());
  auto ticket = std::make_shared<Ticket>(std::move(job));
  in_flight_.push_back(ticket);
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->waiting.push_back(std::move(ticket));
  }
  shared_->work_to_do.notify_one();
}

template <typename Job, typename Result>
Result WorkerPool<Job, Result>::take() {
  LOCKSTEP_ASSERT(!is_empty());
  const auto oldest = in_flight_.front();
  {
    std::unique_lock lock(shared_->mutex);
    const auto is_done = [&oldest] { return oldest->done; };
    if (timeout_.count() == 0) {
      shared_->result_there.wait(lock, is_done);
    } else if (!shared_->result_there.wait_for(lock, timeout_, is_done)) {
      timed_out_ = true;
      throw Timeout({.where = "data loader",
                     .expected = "batch " + std::to_string(num_taken_) + " of the pass within " +
                                 std::to_string(timeout_.count()) + " ms",
                     .got = "none from its worker",
                     .fix = "Raise timeout, or look at what the dataset waits for."});
    }
  }
  in_flight_.pop_front();
  ++num_taken_;
  if (oldest->error) std::rethrow_exception(oldest->error);
  return std::move(*oldest->result);
}

template <typename Job, typename Result>
void WorkerPool<Job, Result>::run_worker(Shared& shared, WorkerInfo who) {
  bool initialised = !shared.worker_init;
  while (const auto ticket = wait_for_work(shared, who.id)) {
    std::optional<Result> result;
    std::exception_ptr error;
    try {
      if (!initialised) shared.worker_init(who);  // tried again for the next job, should it throw
      initialised = true;
      result.emplace(shared.work(ticket->job));
    } catch (...) {
      error = std::current_exception();
    }
    finish(shared, *ticket, std::move(result), std::move(error));
  }
}

template <typename Job, typename Result>
auto WorkerPool<Job, Result>::wait_for_work(Shared& shared, int worker) -> TicketPtr {
  std::unique_lock lock(shared.mutex);
  shared.busy[static_cast<std::size_t>(worker)] = false;
  shared.work_to_do.wait(lock, [&shared] { return shared.stopping || !shared.waiting.empty(); });
  if (shared.stopping) return nullptr;
  auto ticket = std::move(shared.waiting.front());
  shared.waiting.pop_front();
  shared.busy[static_cast<std::size_t>(worker)] = true;
  return ticket;
}

template <typename Job, typename Result>
void WorkerPool<Job, Result>::finish(Shared& shared, Ticket& ticket, std::optional<Result> result,
                                     std::exception_ptr error) {
  {
    const std::lock_guard lock(shared.mutex);
    ticket.result = std::move(result);
    ticket.error = std::move(error);
    ticket.done = true;
  }
  shared.result_there.notify_one();
}

template <typename Job, typename Result>
void WorkerPool<Job, Result>::stop() noexcept {
  std::vector<bool> busy;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    shared_->waiting.clear();
    busy = shared_->busy;
  }
  shared_->work_to_do.notify_all();
  for (std::size_t worker = 0; worker < threads_.size(); ++worker) {
    const bool left_behind = timed_out_ && busy[worker];
    if (left_behind) {
      threads_[worker].detach();
    } else {
      threads_[worker].join();
    }
  }
  threads_.clear();
}

}  // namespace lockstep::data
