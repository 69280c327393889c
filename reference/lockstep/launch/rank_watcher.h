#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/comm/failure_board.h"
#include "lockstep/launch/rank_process.h"

namespace lockstep::launch {

/// Watches ranks until all have ended: passes on their output line by line, tells the others when one ends without a
/// word, ends those that are left too long after a first failure, and leaves no process behind, however it is left
/// itself.
class RankWatcher {
 public:
  RankWatcher(comm::FailureBoard board, std::chrono::milliseconds timeout);
  ~RankWatcher();
  RankWatcher(const RankWatcher&) = delete;
  RankWatcher& operator=(const RankWatcher&) = delete;

  /// Takes charge of a rank that was started; they come in the order of their ranks.
  void add(RankProcess rank);
  /// The failures, the one where it began first; empty when all ranks did well. Looks at each turn whether to stop:
  /// then it returns at once, with nothing judged, and the destructor ends what is left.
  [[nodiscard]] std::vector<RankFailure> watch(const std::function<bool()>& is_told_to_stop);

 private:
  struct Watched;

  void read_output(int patience_ms);
  void reap();
  static int end_group_and_reap(const Watched& rank, int& status);
  void judge(Watched& rank, int status);
  void end_overdue();
  [[nodiscard]] bool any_running() const;
  [[nodiscard]] std::vector<RankFailure> failures() const;

  std::vector<std::unique_ptr<Watched>> ranks_;
  comm::FailureBoard board_;
  std::chrono::milliseconds timeout_;
  std::optional<std::chrono::steady_clock::time_point> first_failure_;
  std::optional<std::chrono::steady_clock::time_point> all_stopped_since_;
};

}  // namespace lockstep::launch
