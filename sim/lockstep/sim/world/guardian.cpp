#include "lockstep/sim/world/guardian.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/sim/world/guardian_channel.h"
#include "lockstep/sim/world/processes.h"
#include "lockstep/sim/world/rank_environment.h"
#include "lockstep/sim/world/terminal.h"

namespace lockstep::sim {

namespace {

constexpr int kTickMs = 20;
constexpr auto kBetweenLooksForTracers = std::chrono::milliseconds(200);

launch::Descriptor open_signals() {
  sigset_t handled;
  sigemptyset(&handled);
  // SIGPIPE is blocked as well: the visible process may be gone when something is sent to it.
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) sigaddset(&handled, signal);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  sigdelset(&handled, SIGPIPE);
  return launch::Descriptor(signalfd(-1, &handled, SFD_NONBLOCK | SFD_CLOEXEC));
}

}  // namespace

Guardian::Guardian(GuardianOrders orders, std::unique_ptr<JobView> view, int channel)
    : orders_(std::move(orders)), view_(std::move(view)), channel_(channel), signals_(open_signals()) {
  setpgid(0, 0);  // what is typed at the terminal is for the visible process, which passes it on
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, "lockstep-guard");
  signal(SIGCHLD, SIG_DFL);  // if it was ignored, nobody could ask how a rank ended
}

Guardian::~Guardian() {
  end_descendants({});
  view_->remove_names();
  remove_shared_memory_of(orders_.job);
}

void Guardian::run() {
  last_turn_ = Clock::now();
  start_ranks();
  auto verdict = watch();
  if (verdict) {
    if (interrupted_by_ == 0 && orders_.options.on_verdict == OnVerdict::stacks) show_stacks();
    if (interrupted_by_ == 0 && orders_.options.on_verdict == OnVerdict::hold) hold(*verdict);
    end_ranks();
    add_ends_to(*verdict);
  } else {
    verdict = with_notes(verdict_of_end());
  }
  end_descendants({});
  send_result(*verdict);
}

void Guardian::start_ranks() {
  const auto& options = orders_.options;
  const auto variables = job_variables(options, orders_.job, orders_.has_gpu);
  if (!options.num_ranks) {
    ranks_.add(0, start_rank(start_of(0, variables, std::move(orders_.streams.front()))));
    return;
  }
  const int port = free_port();
  for (int rank = 0; rank < *options.num_ranks; ++rank) {
    auto own = variables;
    set_rank(own, options, rank, port);
    auto& streams = orders_.streams[static_cast<std::size_t>(rank)];
    ranks_.add(rank, start_rank(start_of(rank, own, std::move(streams))));
  }
}

RankStart Guardian::start_of(int rank, const Variables& variables, RankStreams streams) {
  const auto& options = orders_.options;
  const bool is_debugged = options.is_debugged(rank);
  const auto& command = is_debugged ? *orders_.debugged_command : orders_.command;
  RankStart start{.program = command.program,
                  .argv = command.argv,
                  .variables = variables,
                  .streams = std::move(streams),
                  .stdout_to_stderr = options.stdout_to_stderr,
                  .has_input = is_debugged,
                  .has_terminal = is_debugged,
                  .signal_mask = orders_.signal_mask};
  if (options.body) {
    start.body = [&options, rank](const Variables& own) { return options.body(rank, own); };
    start.not_for_ranks = {channel_, signals_.number()};
    for (const auto& others : orders_.streams) {
      if (others.output) start.not_for_ranks.push_back(others.output.number());
      if (others.errors) start.not_for_ranks.push_back(others.errors.number());
    }
    for (const auto& other : ranks_.all()) start.not_for_ranks.push_back(other.report.descriptor());
  }
  // One command may read what is piped into us; several ranks would tear it apart, and a terminal is not theirs.
  if (!options.num_ranks && isatty(STDIN_FILENO) == 0) start.has_input = true;
  return start;
}

void Guardian::turn() {
  std::vector<pollfd> waiting = {{.fd = signals_.number(), .events = POLLIN}};
  if (channel_ >= 0) waiting.push_back({.fd = channel_, .events = POLLIN});
  ranks_.add_to(waiting);
  poll(waiting.data(), waiting.size(), kTickMs);
  take_signals();
  take_bytes();
  const auto& debugged = orders_.options.debugged;
  const bool was_debugged = debugged && ranks_.is_running(debugged->rank);
  ranks_.read_reports();
  view_->refresh();
  for (const auto& process : ranks_.reap()) {
    if (process.end.signal != 0) view_->set_signal(process.pid, process.end.signal);
  }
  if (was_debugged && !ranks_.is_running(debugged->rank) && orders_.group_at_terminal) {
    give_terminal_to(*orders_.group_at_terminal);
  }
  update_pauses();
  const auto now = Clock::now();
  if (paused_.empty()) active_ += now - last_turn_;
  last_turn_ = now;
}

void Guardian::take_signals() {
  signalfd_siginfo info{};
  while (read(signals_.number(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) interrupt(static_cast<int>(info.ssi_signo));
  }
}

void Guardian::take_bytes() {
  std::array<char, 64> bytes{};
  while (channel_ >= 0) {
    const auto count = recv(channel_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0) return;
    if (count == 0) {  // the visible process is gone: as if it had been told to end
      channel_ = -1;
      interrupt(SIGTERM);
      return;
    }
    for (const char byte : std::string_view(bytes.data(), static_cast<std::size_t>(count))) {
      if (byte == kGoOn) {
        may_go_on_ = true;
      } else if (byte == kSilence) {
        are_ranks_silent_ = true;
      } else {
        interrupt(byte);
      }
    }
  }
}

void Guardian::interrupt(int signal) {
  ++num_interrupts_;
  if (interrupted_by_ == 0) interrupted_by_ = signal;
}

// A rank that a debugger holds is neither lost nor late; the one under a debugger of ours is the user's from the start.
void Guardian::update_pauses() {
  const auto now = Clock::now();
  if (now - last_look_for_tracers_ < kBetweenLooksForTracers) return;
  last_look_for_tracers_ = now;
  std::vector<int> paused;
  for (const auto& [rank, pid] : processes_of_ranks()) {
    const bool is_ours = orders_.options.is_debugged(rank) && ranks_.is_running(rank);
    if (is_ours || tracer_of(pid) != 0) paused.push_back(rank);
  }
  const auto is_in = [](const std::vector<int>& ranks, int rank) {
    return std::ranges::find(ranks, rank) != ranks.end();
  };
  for (const int rank : paused_) {
    if (!is_in(paused, rank)) view_->set_paused(rank, false);
  }
  for (const int rank : paused) view_->set_paused(rank, true);  // each time: it may have joined a board since
  paused_ = std::move(paused);
}

}  // namespace lockstep::sim
