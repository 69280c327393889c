#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/sim/check/board_view.h"
#include "lockstep/sim/world/launch.h"

namespace lockstep::sim {

/// What a launcher knows of its job beyond what /proc tells: what the ranks' own monitors say. `BoardView` explains the
/// functions; they are virtual so that tests can stand in for ranks.
class JobView {
 public:
  JobView() = default;
  virtual ~JobView() = default;
  JobView(const JobView&) = delete;
  JobView& operator=(const JobView&) = delete;

  virtual void refresh() = 0;
  [[nodiscard]] virtual std::optional<std::string> verdict() const = 0;
  [[nodiscard]] virtual std::vector<SeenRank> ranks() const = 0;
  [[nodiscard]] virtual std::optional<std::string> standing_of(int rank) const = 0;
  [[nodiscard]] virtual std::vector<std::string> notes() const = 0;
  virtual void set_signal(pid_t pid, int signal) = 0;
  virtual void set_ended(int rank) = 0;
  virtual void set_paused(int rank, bool paused) = 0;
  virtual void impose(const std::string& verdict_json) = 0;
  virtual void remove_names() noexcept = 0;
};

/// The view of the job's boards in shared memory.
std::unique_ptr<JobView> view_boards_of(const std::string& job);

/// `run` (launch.h) with another look at the job, for tests. It is made in the guardian.
using JobViewFactory = std::function<std::unique_ptr<JobView>(const std::string& job)>;
LaunchResult run(const LaunchOptions& options, const JobViewFactory& make_view);

}  // namespace lockstep::sim
