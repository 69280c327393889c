#include "lockstep/sim/check/checked_rank.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>

#include "lockstep/sim/check/checked_group.h"
#include "lockstep/sim/check/judge.h"
#include "lockstep/sim/check/process.h"
#include "lockstep/sim/check/verdict_document.h"

namespace lockstep::sim {
namespace {

using layout::WaitKind;

std::atomic<std::uint64_t> num_ranks_made{0};

// How long a thread whose wait has failed holds still while another one ends the process: what it would say now would
// only hide why the rank ends.
constexpr useconds_t kExitUs = 3'000'000;
thread_local bool has_ended_here = false;  // this thread said that the rank ends, or has stood aside already

template <std::size_t Size>
void copy_text(std::array<char, Size>& to, std::string_view text) {
  const auto length = std::min(text.size(), Size - 1);
  std::copy_n(text.begin(), length, to.begin());
  to[length] = '\0';
}

// Which seat the calling thread has, and of which rank: asked at every call, so that it is remembered per thread.
struct SeatOfThread {
  std::uint64_t rank_id = 0;
  layout::ThreadSeat* seat = nullptr;
};
thread_local SeatOfThread seat_of_thread;

layout::ThreadSeat* free_seat(layout::RankSeat& rank, std::int32_t tid) {
  for (auto& seat : rank.threads) {
    std::int32_t nobody = 0;
    if (seat.tid == tid || seat.tid.compare_exchange_strong(nobody, tid)) return &seat;
  }
  return nullptr;
}

}  // namespace

void free_if_ended(layout::ThreadSeat& seat) {
  auto tid = seat.tid.load();
  if (tid <= 0 || is_thread_of_this_process(tid)) return;
  constexpr std::int32_t kBeingFreed = -1;
  if (!seat.tid.compare_exchange_strong(tid, kBeingFreed)) return;  // another thread is at it
  seat.wait.store({});
  seat.future_wait.store({});
  seat.tid = 0;
}

VerdictReached::VerdictReached(std::string json) : std::runtime_error(cause_of(json)), json_(std::move(json)) {}

CheckOptions CheckOptions::with_level(std::string_view word) {
  CheckOptions options;
  if (word == "full") return options;
  if (word == "off") {
    options.level = Level::off;
    return options;
  }
  constexpr std::string_view kSampled = "sampled:";
  if (word.starts_with(kSampled)) {
    const auto number = word.substr(kSampled.size());
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), options.sample_every);
    if (parsed.ec == std::errc() && parsed.ptr == number.data() + number.size() && options.sample_every > 0) {
      options.level = Level::sampled;
      return options;
    }
  }
  throw std::invalid_argument("level of checking: expected off, full or sampled:N with N at least 1, got '" +
                              std::string(word) + "'");
}

CheckedRank::CheckedRank(std::shared_ptr<Board> board, int rank, CheckOptions options, Hooks hooks)
    : board_(std::move(board)),
      rank_(rank),
      seat_(board_->seat(rank)),
      options_(options),
      hooks_(std::move(hooks)),
      id_(++num_ranks_made) {}

std::shared_ptr<CheckedRank> CheckedRank::join(std::shared_ptr<Board> board, int rank, CheckOptions options,
                                               std::string_view module_table, Hooks hooks) {
  if (rank < 0 || rank >= board->world_size()) {
    throw std::runtime_error("rank " + std::to_string(rank) + " is none of a world of " +
                             std::to_string(board->world_size()));
  }
  std::shared_ptr<CheckedRank> self(new CheckedRank(std::move(board), rank, options, std::move(hooks)));
  auto& seat = self->seat_;
  std::int32_t nobody = 0;
  if (!seat.pid.compare_exchange_strong(nobody, getpid())) {
    throw std::runtime_error("rank " + std::to_string(rank) + " is taken by process " + std::to_string(nobody));
  }
  seat.start_time = start_time_of(getpid()).value_or(0);
  const auto size = std::min(module_table.size(), seat.module_table.size());
  std::copy_n(module_table.begin(), size, seat.module_table.begin());
  seat.module_table_size.store(static_cast<std::uint32_t>(size), std::memory_order_release);
  seat.life.store(layout::Life::live);
  ++self->board_->header().num_joined;
  return self;
}

CheckedRank::~CheckedRank() { leave(); }

// A process that this one forks has the seat in its memory, and no right to it.
bool CheckedRank::is_ours() const noexcept { return seat_.pid == getpid(); }

void CheckedRank::leave() noexcept {
  if (!is_ours()) return;
  has_ended_here = true;
  auto live = layout::Life::live;
  seat_.life.compare_exchange_strong(live, layout::Life::left);
}

void CheckedRank::fail(std::string_view kind, std::string_view message, std::int64_t step, const CallSite& site) {
  if (!is_ours()) return;
  has_ended_here = true;
  layout::Failure failure{.step = step};
  copy_text(failure.kind, kind);
  copy_text(failure.message, message);
  {
    const std::lock_guard lock(mutex_);
    failure.site = site_of(site);
  }
  seat_.failure.store(failure);
  seat_.life.store(layout::Life::failed);
  conclude(to_json(failure_of(*board_, rank_, hooks_.resolve), *board_, hooks_.resolve));
}

void CheckedRank::conclude(const std::string& json) {
  if (board_->post_verdict(json) && hooks_.report) hooks_.report(json);
}

void CheckedRank::throw_if_judged() const {
  if (options_.hold) return;
  if (auto json = board_->verdict()) throw VerdictReached(std::move(*json));
}

void CheckedRank::stand_aside_of_exit() const {
  if (has_ended_here || seat_.life == layout::Life::live) return;
  has_ended_here = true;  // once is enough
  usleep(kExitUs);
}

void CheckedRank::look_for_verdict() const {
  stand_aside_of_exit();
  board_->wait_for_verdict(1000);
  throw_if_judged();
}

std::uint32_t CheckedRank::text(std::string_view text) {
  if (text.empty()) return 0;
  const auto found = texts_.find(text);
  if (found != texts_.end()) return found->second;
  const auto offset = seat_.arena_used.load();
  if (offset + text.size() + 1 > seat_.arena.size()) {
    remark(layout::Remark::texts_full);
    return 0;
  }
  std::copy(text.begin(), text.end(), seat_.arena.begin() + offset);
  seat_.arena_used.store(static_cast<std::uint32_t>(offset + text.size() + 1));
  texts_.emplace(text, offset);
  return offset;
}

layout::Site CheckedRank::site_of(const CallSite& site) {
  layout::Site on_board{.place = text(site.text)};
  on_board.num_frames = static_cast<std::uint32_t>(std::min(site.frames.size(), on_board.frames.size()));
  std::copy_n(site.frames.begin(), on_board.num_frames, on_board.frames.begin());
  return on_board;
}

layout::Wait CheckedRank::store_wait(std::string_view key) {
  const std::lock_guard lock(mutex_);
  return {.kind = WaitKind::store, .key = text(key)};
}

layout::ThreadSeat* CheckedRank::thread_seat() {
  if (seat_of_thread.rank_id == id_) return seat_of_thread.seat;
  const auto tid = static_cast<std::int32_t>(syscall(SYS_gettid));
  auto* seat = free_seat(seat_, tid);
  if (seat == nullptr) {
    for (auto& candidate : seat_.threads) free_if_ended(candidate);
    seat = free_seat(seat_, tid);
  }
  if (seat == nullptr) {  // not remembered: one may become free
    remark(layout::Remark::threads_full);
    return nullptr;
  }
  seat_of_thread = {.rank_id = id_, .seat = seat};
  return seat;
}

int CheckedRank::add_abort(std::function<void()> abort) {
  const std::lock_guard lock(aborts_mutex_);
  aborts_.emplace(next_abort_, std::move(abort));
  return next_abort_++;
}

void CheckedRank::remove_abort(int number) {
  const std::lock_guard lock(aborts_mutex_);
  aborts_.erase(number);
}

void CheckedRank::abort_all() {
  // Outside the lock: an abort may end works, and with them make and unmake other aborts.
  std::map<int, std::function<void()>> aborts;
  {
    const std::lock_guard lock(aborts_mutex_);
    aborts = aborts_;
  }
  for (const auto& [number, abort] : aborts) {
    try {
      abort();
    } catch (const std::exception&) {  // not every backend can
    }
  }
}

void CheckedRank::begin_backend(std::set<std::int32_t> threads_before) {
  const std::lock_guard lock(backend_threads_mutex_);
  threads_before_ = std::move(threads_before);
}

void CheckedRank::end_backend(const std::set<std::int32_t>& threads_after) {
  const std::lock_guard lock(backend_threads_mutex_);
  for (const auto tid : threads_after) {
    if (threads_before_ && !threads_before_->contains(tid)) backend_threads_.insert(tid);
  }
  threads_before_.reset();
}

void CheckedRank::add_backend_thread(std::int32_t tid) {
  const std::lock_guard lock(backend_threads_mutex_);
  backend_threads_.insert(tid);
}

bool CheckedRank::is_backend_thread(std::int32_t tid) {
  const std::lock_guard lock(backend_threads_mutex_);
  return backend_threads_.contains(tid) || (threads_before_ && !threads_before_->contains(tid));
}

void CheckedRank::watch_future(const layout::Wait& wait, std::function<bool()> is_completed) {
  const auto tid = static_cast<std::int32_t>(syscall(SYS_gettid));
  thread_seat();
  std::vector<HandedOut> completed;  // declared first: they go when the mutex is free again
  const std::lock_guard lock(futures_mutex_);
  take_completed(completed);
  last_futures_[tid] = wait;
  futures_.push_back({.tid = tid, .wait = wait, .is_completed = std::move(is_completed)});
}

// The last holder of a future gives up its tensors, which may take a lock of the program's that someone has who waits
// for our mutex: nothing is destroyed under it.
void CheckedRank::take_completed(std::vector<HandedOut>& into) {
  const auto first = std::stable_partition(futures_.begin(), futures_.end(),
                                           [](const HandedOut& future) { return !future.is_completed(); });
  into.assign(std::make_move_iterator(first), std::make_move_iterator(futures_.end()));
  futures_.erase(first, futures_.end());
}

void CheckedRank::look_for_verdict_on_future() {
  layout::Wait wait;
  {
    const std::lock_guard lock(futures_mutex_);
    const auto last = last_futures_.find(static_cast<std::int32_t>(syscall(SYS_gettid)));
    if (last == last_futures_.end()) return;
    wait = last->second;
  }
  stand_aside_of_exit();
  const WaitScope scope(shared_from_this(), wait);
  board_->wait_for_verdict(1000);
}

void CheckedRank::forget_futures() {
  const std::lock_guard giving_up(giving_up_mutex_);  // what the monitor has taken out is gone by now
  std::vector<HandedOut> all;
  const std::lock_guard lock(futures_mutex_);
  all.swap(futures_);
}

std::map<std::int32_t, layout::Wait> CheckedRank::incomplete_futures() {
  const std::lock_guard giving_up(giving_up_mutex_);
  std::vector<HandedOut> completed;
  const std::lock_guard lock(futures_mutex_);
  take_completed(completed);
  std::map<std::int32_t, layout::Wait> waits;
  for (const auto& future : futures_) waits.emplace(future.tid, future.wait);  // the first one of each thread stays
  return waits;
}

std::shared_ptr<CheckedGroup> CheckedRank::join_group(std::string_view name, const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    if (rank >= board_->world_size()) {
      throw std::runtime_error("the checked backend watches a world of " + std::to_string(board_->world_size()) +
                               ", and group " + std::string(name) + " has rank " + std::to_string(rank));
    }
  }
  const std::lock_guard lock(mutex_);
  const int instance = num_instances_[{std::string(name), ranks}]++;
  const auto index = board_->group(name, ranks, instance);
  if (index) {
    seat_.groups[static_cast<std::size_t>(*index)].membership.store(layout::Membership::member);
  } else {
    remark(layout::Remark::groups_full);
  }
  return std::make_shared<CheckedGroup>(shared_from_this(), index, std::string(name), ranks);
}

WaitScope::WaitScope(const std::shared_ptr<CheckedRank>& rank, layout::Wait wait, const CallSite& site)
    : rank_(rank), seat_(wait.kind == WaitKind::none ? nullptr : rank->thread_seat()) {
  if (seat_ == nullptr) return;
  if (const auto outer = seat_->wait.load(); outer && outer->kind != WaitKind::none) {
    seat_ = nullptr;
    return;
  }
  wait.since_ns = now_ns();
  {
    const std::lock_guard lock(rank->mutex_);
    wait.site = rank->site_of(site);
  }
  seat_->wait.store(wait);
}

WaitScope::~WaitScope() {
  if (seat_ != nullptr) seat_->wait.store({});
}

}  // namespace lockstep::sim
