// How the guardian brings a run to its end once the verdict is known: what it shows first, how it ends the ranks, and
// what it reports.
#include <signal.h>

#include "lockstep/sim/check/process.h"
#include "lockstep/sim/world/guardian.h"
#include "lockstep/sim/world/guardian_channel.h"
#include "lockstep/sim/world/processes.h"
#include "lockstep/sim/world/stacks.h"

namespace lockstep::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr auto kByThemselves = seconds(2);  // the ranks know the verdict
constexpr auto kAfterSignal = seconds(1);   // until SIGKILL
constexpr auto kAfterKill = seconds(5);     // until we give up

// A Python rank prints its frames, which nobody can read from outside, at this signal (faulthandler). Who has no
// handler for it would be ended by it.
int signal_for_own_stacks() { return SIGRTMAX - 1; }

std::string title_of(int rank, pid_t pid) {
  return "rank " + std::to_string(rank) + ", process " + std::to_string(pid);
}

}  // namespace

void Guardian::let_ranks_print_their_own_stacks() {
  bool is_asked = false;
  for (const auto& [rank, pid] : processes_of_ranks()) {
    // A debugger would stop at the signal.
    if (!start_time_of(pid) || tracer_of(pid) != 0 || !catches(pid, signal_for_own_stacks())) continue;
    is_asked = kill(pid, signal_for_own_stacks()) == 0 || is_asked;
  }
  if (!is_asked) return;
  send_to_visible(channel_, {{"await_silence", true}});
  while (!are_ranks_silent_ && interrupted_by_ == 0 && !is_over()) turn();
}

void Guardian::show_stacks() {
  let_ranks_print_their_own_stacks();
  StackReader reader;
  for (const auto& [rank, pid] : processes_of_ranks()) {
    if (!start_time_of(pid)) continue;  // it has ended
    tell(title_of(rank, pid) + ":\n" + reader.stacks_of(pid));
    turn();
    if (interrupted_by_ != 0) return;
  }
}

void Guardian::hold(const VerdictJson& verdict) {
  std::string ways;
  for (const auto& [rank, pid] : processes_of_ranks()) {
    if (start_time_of(pid)) ways += "  rank " + std::to_string(rank) + ": gdb -p " + std::to_string(pid) + "\n";
  }
  if (ways.empty()) return;  // all have ended
  const auto text = verdict.value("verdict", "") + ": " + verdict.value("cause", "") + "\n" + ways +
                    "The ranks stay as they are; Enter or Ctrl-C ends them.";
  send_to_visible(channel_, {{"hold", text}});
  while (!may_go_on_ && interrupted_by_ == 0 && !is_over()) turn();
}

void Guardian::end_ranks() {
  send_to_visible(channel_, {{"ending", true}});
  const bool know_the_verdict = interrupted_by_ == 0 && orders_.options.on_verdict == OnVerdict::end;
  if (know_the_verdict && wait_until_over(kByThemselves, Pauses::do_not_count)) return;
  tell_to_end(interrupted_by_ == SIGINT ? SIGINT : SIGTERM);
  if (wait_until_over(kAfterSignal, Pauses::count)) return;
  ranks_.end_by(SIGKILL);
  // What is left below them is ended by run().
  for (const auto deadline = Clock::now() + kAfterKill; !ranks_.have_all_ended() && Clock::now() < deadline;) turn();
}

void Guardian::tell_to_end(int signal) {
  ranks_.end_by(signal);
  if (orders_.options.num_ranks || !ranks_.have_all_ended()) return;
  // The command has left its ranks to us.
  for (const pid_t child : children_of_this_process()) kill(child, signal);
}

// False when the time is over, or when the user is in a hurry.
bool Guardian::wait_until_over(milliseconds patience, Pauses pauses) {
  const int interrupts = num_interrupts_;
  const auto begin = Clock::now();
  const auto active_before = active_;
  while (!is_over()) {
    turn();
    const auto waited = pauses == Pauses::count ? Clock::now() - begin : active_ - active_before;
    if (num_interrupts_ != interrupts || waited > patience) return false;
  }
  return true;
}

void Guardian::add_ends_to(VerdictJson& verdict) const {
  if (!orders_.options.num_ranks || !verdict["ranks"].is_array()) return;
  for (auto& standing : verdict["ranks"]) {
    if (!standing.is_object()) continue;
    const auto state = standing.value("state", "");
    const auto* rank = ranks_.find(standing.value("rank", -1));
    // One that was blocked or running has ended because of the verdict.
    if (rank == nullptr || !rank->end || rank->was_told_to_end || (state != "failed" && state != "ended")) continue;
    if (rank->end->signal != 0) {
      standing["signal"] = rank->end->signal;
    } else {
      standing["exit_code"] = rank->end->exit_code;
    }
    if (const auto report = rank->reported(); !report.empty()) standing["report"] = report;
  }
}

void Guardian::tell(const std::string& text) { send_to_visible(channel_, {{"tell", text}}); }

void Guardian::send_result(const VerdictJson& verdict) {
  auto ranks = VerdictJson::array();
  for (const auto& rank : ranks_.all()) {
    const auto end = rank.end.value_or(RankEnd{.signal = SIGKILL});
    ranks.push_back({{"rank", rank.rank},
                     {"pid", rank.pid},
                     {"exit_code", end.exit_code},
                     {"signal", end.signal},
                     {"wall_s", rank.wall_s()}});
  }
  send_to_visible(channel_, {{"result", {{"verdict", verdict}, {"ranks", std::move(ranks)}}}});
}

}  // namespace lockstep::sim
