#pragma once

#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "lockstep/sim/check/checked_rank.h"
#include "lockstep/sim/check/judge.h"

namespace lockstep::sim {

/// A rank's watch: a thread of its own, which uses neither LibTorch nor Python.
///
/// Every 50 ms it writes whether its process stands still; judges, if it is the lowest live rank; and when there is a
/// verdict, wherever it was found, closes this rank's connections so that its waits end.
class Monitor {
 public:
  explicit Monitor(std::shared_ptr<CheckedRank> rank);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

 private:
  void run();
  void watch();
  void look_at_own_threads();
  [[nodiscard]] bool is_lowest_live() const;

  std::shared_ptr<CheckedRank> rank_;
  Judge judge_;
  std::map<std::int32_t, std::uint64_t> ticks_before_;  // CPU time per thread at the last look
  std::map<std::int32_t, int> num_sleeping_looks_;      // of threads with an incomplete future
  int num_looks_at_sleepers_ = 0;                       // in this wait
  pid_t pid_ = getpid();
  std::atomic<bool> is_over_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace lockstep::sim
