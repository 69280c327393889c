#pragma once

#include <memory>
#include <set>
#include <utility>

#include "lockstep/sim/backend/checked_work.h"
#include "lockstep/sim/backend/process_ranks.h"
#include "lockstep/sim/check/checked_group.h"
#include "lockstep/sim/check/process.h"

namespace lockstep::sim {

/// The kernel's ids of all threads of this process.
inline std::set<std::int32_t> thread_ids_of_this_process() {
  std::set<std::int32_t> tids;
  for (const auto& thread : threads_of_this_process()) tids.insert(thread.tid);
  return tids;
}

/// While it lives a backend is made: the threads that begin meanwhile are known to serve it.
class BackendMaking {
 public:
  explicit BackendMaking(std::shared_ptr<CheckedRank> rank) : rank_(std::move(rank)) {
    rank_->begin_backend(thread_ids_of_this_process());
  }
  BackendMaking(const BackendMaking&) = delete;
  BackendMaking& operator=(const BackendMaking&) = delete;
  ~BackendMaking() { rank_->end_backend(thread_ids_of_this_process()); }

 private:
  std::shared_ptr<CheckedRank> rank_;
};

/// Makes the backend of a group by `make`, which returns when the members have met. Until then this thread is seen to
/// wait for them.
template <typename Make>
auto meet(const WatchedRank& watched, const CheckedGroup& group, Make&& make) {
  auto made = [&] {
    const BackendMaking making(watched.rank);
    return waiting(watched.rank, group.rendezvous(), make);
  }();
  tell_of_other_hosts(watched, group.ranks());
  return made;
}

}  // namespace lockstep::sim
