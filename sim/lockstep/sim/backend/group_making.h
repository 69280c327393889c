#pragma once

#include <set>

#include "lockstep/sim/backend/checked_work.h"
#include "lockstep/sim/backend/process_ranks.h"
#include "lockstep/sim/check/checked_group.h"
#include "lockstep/sim/check/process.h"

namespace lockstep::sim {

inline std::set<std::int32_t> thread_ids_of_this_process() {
  std::set<std::int32_t> tids;
  for (const auto& thread : threads_of_this_process()) tids.insert(thread.tid);
  return tids;
}

/// Makes the backend of a group by `make`, which returns when the members have met. Until then this thread is seen to
/// wait for them, and the threads that the backend starts are known to serve it.
template <typename Make>
auto meet(const WatchedRank& watched, const CheckedGroup& group, Make&& make) {
  watched.rank->begin_backend(thread_ids_of_this_process());
  const auto end = [&watched] { watched.rank->end_backend(thread_ids_of_this_process()); };
  try {
    auto made = waiting(watched.rank, group.rendezvous(), make);
    end();
    return made;
  } catch (...) {
    end();
    throw;
  }
}

}  // namespace lockstep::sim
