#include "lockstep/state/rank_context.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"
#include "lockstep/comm/failure_board.h"
#include "lockstep/comm/watcher.h"
#include "lockstep/state/exit_reporting.h"
#include "lockstep/state/partial_state.h"

namespace lockstep::state {
namespace {

std::atomic<int> num_thread_worlds{0};
std::mutex process_rank_mutex;
std::shared_ptr<RankContext> process_rank;
std::atomic<RankContext*> found_process_rank{nullptr};  // what process_rank holds, for RankContext::find

// With the mutex held.
void make_process_wide(std::shared_ptr<RankContext> rank) {
  process_rank = std::move(rank);
  found_process_rank = process_rank.get();
}

std::shared_ptr<RankContext> process_wide_rank() {
  const std::lock_guard lock(process_rank_mutex);
  if (!process_rank) {
    make_process_wide(RankContext::from(Environment::of_process()));
    for (const auto& warning : unknown_variable_warnings(process_rank->environment())) log::warning(warning);
  }
  return process_rank;
}

}  // namespace

RankContext::RankContext(Environment environment) : environment_(std::move(environment)) {
  if (const auto level = environment_.log_level("LOCKSTEP_LOG_LEVEL")) {
    auto settings = log::settings();
    settings.level = *level;
    log::set_settings(settings);
  }
}

RankContext::~RankContext() {
  RankContext* self = this;
  found_process_rank.compare_exchange_strong(self, nullptr);
}

namespace {

std::shared_ptr<accounting::Account> make_account(int rank, const Environment& environment,
                                                  accounting::Subscription& trace) {
  auto account = std::make_shared<accounting::Account>(rank);
  if (const auto folder = environment.folder("LOCKSTEP_TRACE_DIR")) {
    trace = accounting::write_json_lines(*account, fmt::format("{}/rank{}.jsonl", *folder, rank));
  }
  return account;
}

}  // namespace

std::shared_ptr<RankContext> RankContext::from(Environment environment) {
  std::shared_ptr<RankContext> rank(new RankContext(std::move(environment)));
  const auto placement = place(rank->environment_, {});
  rank->account_ = make_account(placement.world.rank, rank->environment_, rank->trace_);
  return rank;
}

std::shared_ptr<RankContext> RankContext::for_process(Environment environment) {
  auto rank = from(std::move(environment));
  const std::lock_guard lock(process_rank_mutex);
  make_process_wide(rank);
  return rank;
}

std::shared_ptr<RankContext> RankContext::for_thread(World world, comm::Store store, Environment environment) {
  std::shared_ptr<RankContext> rank(new RankContext(std::move(environment)));
  rank->thread_world_ = checked(world, "thread rank");
  rank->thread_store_ = std::move(store);
  rank->thread_generator_ = at::make_generator<at::CPUGeneratorImpl>(c10::detail::getNonDeterministicRandom());
  rank->account_ = make_account(world.rank, rank->environment_, rank->trace_);
  return rank;
}

RankContext& RankContext::current() {
  if (auto* rank = dynamic_cast<RankContext*>(interpose::rank_slot())) return *rank;
  if (num_thread_worlds > 0) {
    throw NoRankContext({.where = "rank context",
                         .expected = "a thread that belongs to a rank",
                         .got = "a thread that was started outside, while this process has several ranks",
                         .fix = "Start it with RankContext::start_thread, or install a StateScope."});
  }
  return *process_wide_rank();
}

RankContext* RankContext::find() noexcept {
  if (auto* rank = dynamic_cast<RankContext*>(interpose::rank_slot())) return rank;
  return num_thread_worlds > 0 ? nullptr : found_process_rank.load();
}

at::Generator RankContext::generator() const {
  return thread_generator_ ? *thread_generator_ : at::detail::getDefaultCPUGenerator();
}

std::thread RankContext::start_thread(std::function<void()> run) {
  return std::thread([self = shared_from_this(), run = std::move(run)] {
    const StateScope scope(self);
    run();
  });
}

void RankContext::report_failure(const std::exception& error) noexcept {
  if (!partial || !partial->failures) return;
  if (const auto* relayed = dynamic_cast<const RelayedError*>(&error)) {
    // In its name, for this rank may be the first whose end is noticed.
    partial->failures->post({.rank = relayed->rank(),
                             .kind = std::string(kind_of(error)),
                             .message = relayed->cause(),
                             .step = account_->stamp().step});
  } else if (comm::is_first_hand(error)) {
    partial->failures->post({.rank = partial->placement.world.rank,
                             .kind = std::string(kind_of(error)),
                             .message = brief(error),
                             .step = account_->stamp().step});
    comm::tell_watcher_of_failure(std::string(kind_of(error)), brief(error), account_->stamp().step);
  }
  leave_world(*partial);
}

void RankContext::report_exit(int code) noexcept {
  if (!partial || !partial->failures) return;
  partial->failures->leave(code);
  if (code == 0) {
    comm::tell_watcher_of_end();
  } else {
    comm::tell_watcher_of_failure("exit", fmt::format("exited with code {}", code), account_->stamp().step);
  }
  // The end of the process closes its connections. Closing them here would wake this rank's other threads with errors
  // of their own; only a rank that hosts the store has to stay for its readers, who look once their waits have failed.
  // If it ends well, the others are about to do so, and what it has sent them may still be on its way.
  const bool is_host = partial->store && partial->store->is_server();
  if (code == 0 || !is_host) partial->failures->outlive_readers(std::chrono::seconds(1));
  if (is_host) leave_world(*partial);
}

ThreadRanksScope::ThreadRanksScope() { ++num_thread_worlds; }
ThreadRanksScope::~ThreadRanksScope() { --num_thread_worlds; }

void reset_process_rank() {
  const std::lock_guard lock(process_rank_mutex);
  process_rank.reset();
}

}  // namespace lockstep::state
