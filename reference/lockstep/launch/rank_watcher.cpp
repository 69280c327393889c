#include "lockstep/launch/rank_watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>

#include "lockstep/launch/pipe_lines.h"
#include "lockstep/launch/rank_report.h"

namespace lockstep::launch {

using std::chrono::steady_clock;

namespace {

constexpr auto kGrace = std::chrono::seconds(5);
constexpr int kTickMs = 20;

PipeLines::Sink print_to(std::ostream& stream, int rank) {
  return [&stream, label = fmt::format("[rank {}] ", rank)](std::string_view lines) {
    stream << with_label(label, without_label(label, lines)) << std::flush;
  };
}

comm::FailureNote note_of(const RankFailure& failure) {
  if (failure.signal != 0) {
    return {.rank = failure.rank,
            .kind = failure.kind,
            .message = fmt::format("ended by signal {} ({})", failure.signal, strsignal(failure.signal))};
  }
  if (failure.kind == "exit") {
    return {.rank = failure.rank, .kind = "exit", .message = fmt::format("exited with code {}", failure.exit_code)};
  }
  return {.rank = failure.rank, .kind = failure.kind, .message = failure.message};
}

}  // namespace

struct RankWatcher::Watched {
  explicit Watched(RankProcess process)
      : rank(process.rank),
        pid(process.pid),
        report(std::move(process.report)),
        output(std::move(process.output), print_to(std::cout, rank)),
        errors(std::move(process.errors), print_to(std::cerr, rank)) {}

  int rank;
  pid_t pid;
  PipeLines report;
  PipeLines output;
  PipeLines errors;
  bool running = true;
  bool stopped = false;
  bool overdue = false;  // ended by us
  std::optional<RankFailure> failure;
};

RankWatcher::RankWatcher(comm::FailureBoard board, std::chrono::milliseconds timeout)
    : board_(std::move(board)), timeout_(timeout) {}

void RankWatcher::add(RankProcess rank) { ranks_.push_back(std::make_unique<Watched>(std::move(rank))); }

RankWatcher::~RankWatcher() {
  for (const auto& rank : ranks_) {
    if (!rank->running) continue;
    kill(-rank->pid, SIGKILL);  // the rank's whole process group: what it started goes with it
    waitpid(rank->pid, nullptr, 0);
  }
}

bool RankWatcher::any_running() const {
  return std::ranges::any_of(ranks_, [](const auto& rank) { return rank->running; });
}

std::vector<RankFailure> RankWatcher::watch(const std::function<bool()>& is_told_to_stop) {
  while (any_running()) {
    if (is_told_to_stop()) return {};
    read_output(kTickMs);
    reap();
    end_overdue();
  }
  return failures();
}

void RankWatcher::read_output(int patience_ms) {
  std::vector<pollfd> waiting;
  for (const auto& rank : ranks_) {
    for (const auto* lines : {&rank->report, &rank->output, &rank->errors}) {
      if (lines->descriptor() >= 0) waiting.push_back({.fd = lines->descriptor(), .events = POLLIN});
    }
  }
  poll(waiting.data(), waiting.size(), patience_ms);
  for (const auto& rank : ranks_) {
    rank->report.read_available();
    rank->output.read_available();
    rank->errors.read_available();
  }
}

// Ends the rank's process group while its leader, though ended, still holds the number; then takes its status.
int RankWatcher::end_group_and_reap(const Watched& rank, int& status) {
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(rank.pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      ended.si_pid == rank.pid) {
    kill(-rank.pid, SIGKILL);
  }
  return waitpid(rank.pid, &status, WNOHANG | WUNTRACED | WCONTINUED);
}

void RankWatcher::reap() {
  for (const auto& rank : ranks_) {
    if (!rank->running) continue;
    int status = 0;
    const int got = end_group_and_reap(*rank, status);
    if (got == 0 || (got < 0 && errno == EINTR)) continue;
    if (got > 0 && (WIFSTOPPED(status) || WIFCONTINUED(status))) {
      rank->stopped = WIFSTOPPED(status);
      continue;
    }
    rank->running = false;
    for (auto* lines : {&rank->report, &rank->output, &rank->errors}) lines->finish();
    judge(*rank, got > 0 ? status : 0);  // taken by somebody else (SIGCHLD ignored): its report has to do
  }
}

// A rank is well only if it said so itself: one that called exit(0) has left its peers as surely as one that crashed.
void RankWatcher::judge(Watched& rank, int status) {
  const auto report = parse_report(rank.rank, rank.report.text());
  if (report && report->kind == kOk && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  RankFailure failure = report && report->kind != kOk ? *report : RankFailure{.rank = rank.rank, .kind = "exit"};
  if (WIFSIGNALED(status)) {
    failure.kind = rank.overdue ? "timeout" : "signal";
    failure.signal = WTERMSIG(status);
    if (rank.overdue) {
      failure.message =
          rank.stopped ? "stopped by a signal, ended by the launcher" : "did not end by itself, ended by the launcher";
    }
  } else {
    failure.exit_code = WEXITSTATUS(status);
  }
  if (!rank.overdue)
    board_.post(note_of(failure));  // the first note stands: a rank that told the others itself came first
  rank.failure = failure;
  if (!first_failure_) first_failure_ = steady_clock::now();
}

void RankWatcher::end_overdue() {
  const auto now = steady_clock::now();
  const bool all_stopped =
      std::ranges::all_of(ranks_, [](const auto& rank) { return !rank->running || rank->stopped; });
  if (!all_stopped) all_stopped_since_.reset();
  if (all_stopped && !all_stopped_since_) all_stopped_since_ = now;
  // After a failure a rank that stands still has nobody left to wait for; without one it gets the time of any wait.
  const bool stopped_too_long = all_stopped && (first_failure_ || now - *all_stopped_since_ > timeout_);
  const bool failed_too_long = first_failure_ && now - *first_failure_ > timeout_ + kGrace;
  if (!stopped_too_long && !failed_too_long) return;
  for (const auto& rank : ranks_) {
    if (!rank->running) continue;
    rank->overdue = true;
    kill(-rank->pid, SIGKILL);
  }
}

std::vector<RankFailure> RankWatcher::failures() const {
  std::vector<RankFailure> failures;
  for (const auto& rank : ranks_) {
    if (rank->failure) failures.push_back(*rank->failure);
  }
  // The ranks have agreed on the board where it began; the order in which processes were reaped says nothing. A rank
  // that stood still before it had met the others is known to us alone.
  const auto note = board_.first_failure();
  const auto stood_still = [this](const RankFailure& failure) {
    return ranks_[static_cast<std::size_t>(failure.rank)]->stopped;
  };
  const bool any_stood_still = std::ranges::any_of(failures, stood_still);
  std::ranges::stable_partition(failures, [&](const RankFailure& failure) {
    return any_stood_still ? stood_still(failure) : note && failure.rank == note->rank;
  });
  return failures;
}

}  // namespace lockstep::launch
