#include "lockstep/sim/check/monitor.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <set>

#include "lockstep/sim/check/process.h"

namespace lockstep::sim {
namespace {

constexpr int kLookMs = 50;
// A thread sleeps in a future's wait, not in some lock for a moment, when this many looks in a row found it asleep.
constexpr int kSleepingLooks = 3;
// How long a thread that may act by itself is waited for: 30 s.
constexpr int kLooksAtSleepers = 600;

// Ranks that are threads of one process share its threads; each answers for its own.
std::atomic<int> num_monitors{0};

}  // namespace

Monitor::Monitor(std::shared_ptr<CheckedRank> rank)
    : rank_(std::move(rank)),
      judge_(std::shared_ptr<Board>(rank_, &rank_->board()), rank_->options(), rank_->resolver()) {
  ++num_monitors;
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Monitor::~Monitor() {
  is_over_ = true;
  if (getpid() == pid_) {
    thread_.join();
    rank_->seat().still_looks = 0;
  } else {
    thread_.detach();  // in a forked child there is no such thread
  }
  --num_monitors;
}

bool Monitor::is_lowest_live() const {
  for (int rank = 0; rank < rank_->rank(); ++rank) {
    const auto& seat = rank_->board().seat(rank);
    const bool may_judge = seat.life == layout::Life::live && seat.is_paused == 0;
    if (may_judge && start_time_of(seat.pid) == seat.start_time) return false;
  }
  return true;
}

void Monitor::run() {
  try {
    watch();
  } catch (const std::exception& error) {  // the user's program goes on, unwatched
    std::fprintf(stderr, "lockstep: rank %d is no longer watched: %s\n", rank_->rank(), error.what());
  }
}

void Monitor::watch() {
  while (!is_over_) {
    if (rank_->board().wait_for_verdict(kLookMs)) {
      // A rank that is about to exit closes its connections by that; errors in its other threads would get in between.
      if (rank_->options().hold || rank_->seat().life != layout::Life::live) return;
      rank_->abort_all();
      // Groups that are made or called from now on refuse by themselves; those that were being made are caught here.
      for (int i = 0; i < 20 && !is_over_; ++i) {
        usleep(kLookMs * 1000);
        rank_->abort_all();
      }
      return;
    }
    look_at_own_threads();
    if (!is_lowest_live()) continue;
    if (const auto verdict = judge_.look()) rank_->conclude(*verdict);
  }
}

void Monitor::look_at_own_threads() {
  auto& seat = rank_->seat();
  const auto futures = rank_->incomplete_futures();
  const auto waits = [](const layout::ThreadSeat& thread) {
    const auto wait = thread.wait.load();
    return wait && wait->kind != layout::WaitKind::none;
  };
  // A thread that came to wait since the last look is no news, and looking at all threads costs some time.
  const auto last_look = now_ns() - static_cast<std::int64_t>(kLookMs) * 1'000'000;
  const bool any_waits = std::ranges::any_of(seat.threads, [last_look](const layout::ThreadSeat& thread) {
    const auto wait = thread.wait.load();
    return wait && wait->kind != layout::WaitKind::none && wait->since_ns < last_look;
  });
  if (!any_waits && futures.empty()) {  // the usual case, and a cheap one
    seat.still_looks = 0;
    num_looks_at_sleepers_ = 0;
    ticks_before_.clear();
    for (auto& thread : seat.threads) {
      if (const auto wait = thread.future_wait.load(); wait && wait->kind != layout::WaitKind::none)
        thread.future_wait.store({});
    }
    return;
  }

  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  std::set<std::int32_t> own;
  for (const auto& thread : seat.threads) own.insert(thread.tid.load());
  std::set<std::int32_t> there;
  std::set<std::int32_t> busy;
  bool has_sleeper = false;
  for (const auto& thread : threads_of_this_process()) {
    there.insert(thread.tid);
    const auto before = ticks_before_.find(thread.tid);
    const bool has_moved = before == ticks_before_.end() || before->second != thread.cpu_ticks;
    ticks_before_[thread.tid] = thread.cpu_ticks;
    if (thread.tid == self || (num_monitors > 1 && !own.contains(thread.tid))) continue;
    if (thread.state == 'R' || thread.state == 'D' || has_moved) busy.insert(thread.tid);
    // A thread that waits for a time, a child or a file may yet make the call. One that never does must not hide a
    // deadlock for good.
    const bool is_users = !own.contains(thread.tid) && !rank_->is_backend_thread(thread.tid);
    if (is_users && num_looks_at_sleepers_ < kLooksAtSleepers && may_act_by_itself(thread.tid) &&
        !is_thread_of_libtorch(thread.tid)) {
      busy.insert(thread.tid);
      has_sleeper = true;
    }
  }
  bool is_still = true;
  bool has_waiter = false;
  for (auto& thread : seat.threads) {
    const auto tid = thread.tid.load();
    if (tid <= 0) continue;
    if (!there.contains(tid)) {
      free_if_ended(thread);  // or it has just begun, and is about its own work
      is_still = is_still && thread.tid == 0;
      continue;
    }
    const bool is_waiting = waits(thread);
    const auto future = futures.find(tid);
    const bool sleeps = !busy.contains(tid) && sleeps_in_futex(tid);
    auto& looks = num_sleeping_looks_[tid];
    looks = !is_waiting && future != futures.end() && sleeps ? looks + 1 : 0;
    const auto shown = thread.future_wait.load();
    const bool is_shown = shown && shown->kind != layout::WaitKind::none;
    if (looks >= kSleepingLooks && !is_shown) {
      auto wait = future->second;
      wait.since_ns = now_ns() - static_cast<std::int64_t>(kSleepingLooks) * kLookMs * 1'000'000;
      thread.future_wait.store(wait);
    } else if (looks == 0 && is_shown) {
      thread.future_wait.store({});
    }
    if (is_waiting || looks >= kSleepingLooks) {
      has_waiter = true;
    } else if (!sleeps) {
      is_still = false;  // it communicates, and neither waits nor sleeps for another thread: it is about its own work
    }
  }
  // A waiting thread that polls uses some time itself; what counts is whether the others do.
  for (const auto tid : busy) is_still = is_still && own.contains(tid);
  num_looks_at_sleepers_ = has_sleeper ? num_looks_at_sleepers_ + 1 : num_looks_at_sleepers_;
  seat.still_looks = has_waiter && is_still ? seat.still_looks + 1 : 0;
}

}  // namespace lockstep::sim
