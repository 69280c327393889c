#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/pipe_lines.h"
#include "lockstep/sim/world/rank_starter.h"
#include "lockstep/sim/world/verdicts.h"

namespace lockstep::sim {

/// A process that was started as a rank, or, without ranks of ours, the command.
struct RankChild {
  using Clock = std::chrono::steady_clock;

  int rank = 0;
  pid_t pid = 0;
  launch::PipeLines report;
  Clock::time_point started;
  std::optional<RankEnd> end;
  Clock::time_point ended;
  bool was_told_to_end = false;  ///< by us: how it ended says nothing about it

  [[nodiscard]] double wall_s() const;
  /// "RuntimeError: out of patience"; empty if it ended without a word.
  [[nodiscard]] std::string reported() const;
  /// Why nothing was run: its program did not start, or refused what it was asked to run; none otherwise.
  [[nodiscard]] std::optional<std::string> refusal() const;
};

/// A process that has ended.
struct EndedProcess {
  pid_t pid = 0;
  RankEnd end;
};

/// The processes that the guardian has started, as their parent sees them. It reaps adopted orphans as well.
class RankChildren {
 public:
  void add(int rank, StartedRank started);
  void add_to(std::vector<pollfd>& waiting) const;
  void read_reports();
  /// @return all that have ended since, the orphans among them
  std::vector<EndedProcess> reap();
  /// Tells those that run, and what they have started in their process groups, to end.
  void end_by(int signal);

  [[nodiscard]] bool have_all_ended() const;
  /// Whether this rank's process, if it is one of ours, still runs.
  [[nodiscard]] bool is_running(int rank) const;
  /// The one that ended first of those that did not end well.
  [[nodiscard]] const RankChild* first_failed() const;
  [[nodiscard]] const std::vector<RankChild>& all() const { return ranks_; }
  [[nodiscard]] const RankChild* find(int rank) const;

 private:
  std::vector<RankChild> ranks_;
};

}  // namespace lockstep::sim
