#include "lockstep/launch/thread_launcher.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

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

}  // namespace

void thread_launcher(const std::function<void()>& function, int num_ranks, const ThreadLauncherOptions& options) {
  if (num_ranks < 1) {
    throw InvalidArgument({.where = "thread_launcher", .expected = "at least one rank", .got = fmt::format("{}", num_ranks)});
  }
  const state::ThreadRanksScope no_process_rank;
  auto environment = state::Environment::of_process();
  environment.set("LOCKSTEP_TIMEOUT", fmt::format("{:.3f}", static_cast<double>(options.timeout.count()) / 1000));
  const auto store = comm::Store::hash(options.timeout);
  Outcomes outcomes;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      const auto context = state::RankContext::for_thread({.rank = rank, .size = num_ranks}, store, environment);
      const state::StateScope scope(context);
      try {
        function();
      } catch (const std::exception& error) {
        context->report_failure(error);
        outcomes.add({.rank = rank, .kind = std::string(kind_of(error)), .message = brief(error)},
                     dynamic_cast<const RankLost*>(&error) == nullptr);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (auto failures = outcomes.take(); !failures.empty()) throw ChildFailed(std::move(failures));
}

}  // namespace lockstep::launch
