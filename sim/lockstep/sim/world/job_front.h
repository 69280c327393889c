#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/launch/caught_signals.h"
#include "lockstep/launch/descriptor.h"
#include "lockstep/launch/pipe_lines.h"
#include "lockstep/sim/world/job_view.h"
#include "lockstep/sim/world/processes.h"
#include "lockstep/sim/world/rank_reader.h"
#include "lockstep/sim/world/rank_starter.h"
#include "lockstep/sim/world/user_output.h"
#include "lockstep/sim/world/verdicts.h"

namespace lockstep::sim {

/// The job as the process that the user sees has it: prints what ranks write and what the guardian tells, passes
/// signals on to the guardian, and takes the guardian's place if that is killed.
class JobFront {
 public:
  JobFront(const LaunchOptions& options, std::string job, launch::Descriptor channel, std::vector<RankStreams> streams);

  /// In the guardian, which must not hold what tells it that this process is gone.
  void close_in_child();
  /// Until the guardian has ended.
  /// @throws InvalidArgument, RuntimeError  if it could not start the ranks
  LaunchResult watch(pid_t guardian, const JobViewFactory& make_view);

 private:
  using Clock = std::chrono::steady_clock;

  void turn();
  void take_messages(std::string_view lines);
  void tell_of_silence(bool has_output);
  [[nodiscard]] bool holds_back();
  void take_input();
  [[nodiscard]] VerdictJson end_in_place_of(pid_t guardian, int status);
  [[nodiscard]] LaunchResult result_of(VerdictJson verdict, const VerdictJson& ranks) const;

  const LaunchOptions* options_;
  std::string job_;
  std::optional<pid_t> group_at_terminal_;
  SubreaperScope subreaper_;  // the ranks come to us if the guardian is killed
  std::vector<pid_t> other_children_;
  launch::Descriptor to_guardian_;
  launch::PipeLines messages_;
  launch::CaughtSignals signals_;
  UserOutput user_;
  std::vector<std::unique_ptr<RankReader>> readers_;
  std::unique_ptr<JobView> view_;
  bool are_ranks_ending_ = false;  // because of the verdict
  bool waits_for_enter_ = false;
  // While the guardian waits for silence: since when it does, and when a rank last wrote something.
  std::optional<Clock::time_point> silence_asked_;
  Clock::time_point last_output_;
  VerdictJson last_message_;  // the result, or why there is none
};

}  // namespace lockstep::sim
