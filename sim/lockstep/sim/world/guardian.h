#pragma once

#include <signal.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/descriptor.h"
#include "lockstep/sim/world/job_view.h"
#include "lockstep/sim/world/rank_children.h"
#include "lockstep/sim/world/verdicts.h"

namespace lockstep::sim {

/// A program that is started.
struct Command {
  std::string program;  ///< its file
  std::vector<std::string> argv;
};

/// What the visible process has decided before it forks the guardian.
struct GuardianOrders {
  const LaunchOptions& options;
  std::string job;
  Command command;                          ///< empty where options.body runs
  std::optional<Command> debugged_command;  ///< of the rank that runs under a debugger
  bool has_gpu = false;
  std::vector<RankStreams> streams;        ///< one for each rank, or one for the command
  sigset_t signal_mask{};                  ///< for the ranks
  std::optional<pid_t> group_at_terminal;  ///< gets the terminal back from a debugger
};

/// The process between the one that the user sees and the ranks: it starts them, watches them, reaches the verdict, and
/// ends all that descends from it, however the visible process fares. It never writes to the user's streams, which may
/// not take anything for a long time; what it has to tell it sends through the channel.
class Guardian {
 public:
  Guardian(GuardianOrders orders, std::unique_ptr<JobView> view, int channel);
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  /// Until all is over; then the result has been sent.
  /// @throws InvalidArgument  if the program does not start
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  struct SeenProcess {
    int rank = 0;
    pid_t pid = 0;
  };

  void start_ranks();
  [[nodiscard]] RankStart start_of(int rank, const Variables& variables, RankStreams streams);

  // One look at everything that may have happened; waits a few milliseconds for it.
  void turn();
  void take_signals();
  void take_bytes();
  void interrupt(int signal);
  void update_pauses();
  void look_for_early_ends();

  // guardian_judging.cpp
  // A verdict while ranks run, or because one has failed; none when all have ended well.
  [[nodiscard]] std::optional<VerdictJson> watch();
  [[nodiscard]] std::optional<VerdictJson> verdict_of_board() const;
  [[nodiscard]] std::optional<VerdictJson> verdict_of_failure() const;
  [[nodiscard]] std::optional<VerdictJson> verdict_of_debugger() const;
  [[nodiscard]] VerdictJson imposed(VerdictJson verdict);
  [[nodiscard]] VerdictJson with_notes(VerdictJson verdict) const;
  [[nodiscard]] VerdictJson verdict_of_end();
  [[nodiscard]] std::vector<std::string> find_and_end_leftovers();

  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool has_joined(int rank) const;
  [[nodiscard]] std::vector<SeenProcess> processes_of_ranks() const;
  [[nodiscard]] VerdictJson standings() const;

  // guardian_ending.cpp
  void show_stacks();
  void let_ranks_print_their_own_stacks();
  void hold(const VerdictJson& verdict);
  void end_ranks();
  void tell_to_end(int signal);
  enum class Pauses { count, do_not_count };
  bool wait_until_over(std::chrono::milliseconds patience, Pauses pauses);
  void add_ends_to(VerdictJson& verdict) const;
  void tell(const std::string& text);
  void send_result(const VerdictJson& verdict);

  GuardianOrders orders_;
  std::unique_ptr<JobView> view_;
  int channel_;  // -1 once the visible process is gone
  launch::Descriptor signals_;
  RankChildren ranks_;

  int interrupted_by_ = 0;  // the first signal
  int num_interrupts_ = 0;
  bool may_go_on_ = false;  // the user has seen enough of ranks that are held
  bool are_ranks_silent_ = false;
  bool is_early_end_told_ = false;
  std::vector<int> paused_;
  Clock::time_point last_turn_;
  Clock::time_point last_look_for_tracers_;
  Clock::duration active_{};  // time in which nobody was paused
};

}  // namespace lockstep::sim
