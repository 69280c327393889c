#include "lockstep/launch/thread_launcher.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/base/duration.h"
#include "lockstep/base/logging.h"
#include "lockstep/comm/failure_board.h"
#include "lockstep/comm/store.h"
#include "lockstep/state/rank_context.h"

namespace lockstep::launch {
namespace {

class Outcomes {
 public:
  void add(RankFailure failure, bool first_hand) {
    const std::lock_guard lock(mutex_);
    // Those that merely lost a peer come after the one that was lost.
    failures_.insert(first_hand ? failures_.begin() + num_first_hand_++ : failures_.end(), std::move(failure));
  }
  [[nodiscard]] std::vector<RankFailure> take() { return std::move(failures_); }

 private:
  std::mutex mutex_;
  std::vector<RankFailure> failures_;
  std::ptrdiff_t num_first_hand_ = 0;
};

// What the others learn from if this rank fails before it has met them.
void post(const comm::Store& store, World world, const RankFailure& failure) {
  comm::FailureBoard(store, world).post({.rank = failure.rank, .kind = failure.kind, .message = failure.message});
}

// The function in its rank's context; none when it did well.
std::exception_ptr error_of(const std::function<void()>& function) {
  try {
    function();
    return nullptr;
  } catch (const std::exception&) {
    return std::current_exception();
  } catch (...) {
    return std::make_exception_ptr(RuntimeError("an exception of unknown type"));
  }
}

}  // namespace

void thread_launcher(const std::function<void()>& function, int num_ranks, const ThreadLauncherOptions& options) {
  if (num_ranks < 1) {
    throw InvalidArgument(
        {.where = "thread_launcher", .expected = "at least one rank", .got = fmt::format("{}", num_ranks)});
  }
  auto environment = state::Environment::of_process();
  const auto timeout =
      options.timeout.value_or(environment.seconds("LOCKSTEP_TIMEOUT").value_or(std::chrono::seconds(60)));
  require_positive("thread_launcher", timeout);
  const state::ThreadRanksScope no_process_rank;
  environment.set("LOCKSTEP_TIMEOUT", fmt::format("{:.3f}", seconds_of(timeout)));
  for (const auto& warning : state::unknown_variable_warnings(environment)) log::warning(warning);
  const auto store = comm::Store::hash(timeout);
  std::vector<std::shared_ptr<state::RankContext>> contexts;  // made here, where bad variables are the caller's error
  for (int rank = 0; rank < num_ranks; ++rank) {
    contexts.push_back(state::RankContext::for_thread({.rank = rank, .size = num_ranks}, store, environment));
  }
  Outcomes outcomes;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      const World world{.rank = rank, .size = num_ranks};
      const auto& context = contexts[static_cast<std::size_t>(rank)];
      const state::StateScope scope(context);
      const auto failed = error_of(function);
      if (!failed) return;
      try {
        std::rethrow_exception(failed);
      } catch (const std::exception& error) {
        const bool is_first_hand = comm::is_first_hand(error);
        RankFailure failure{.rank = rank, .kind = std::string(kind_of(error)), .message = brief(error)};
        if (is_first_hand && !context->partial) post(store, world, failure);
        context->report_failure(error);
        outcomes.add(std::move(failure), is_first_hand);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (auto failures = outcomes.take(); !failures.empty()) throw ChildFailed(std::move(failures));
}

}  // namespace lockstep::launch
