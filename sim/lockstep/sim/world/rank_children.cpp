#include "lockstep/sim/world/rank_children.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/launch/rank_report.h"

namespace lockstep::sim {
namespace {

RankEnd end_of(int status) {
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status)};
}

}  // namespace

double RankChild::wall_s() const {
  return std::chrono::duration<double>((end ? ended : Clock::now()) - started).count();
}

std::string RankChild::reported() const {
  const auto report = launch::parse_report(rank, this->report.text());
  if (!report || report->kind == launch::kOk) return "";
  return report->kind + ": " + report->message;
}

std::optional<std::string> RankChild::refusal() const {
  const auto report = launch::parse_report(rank, this->report.text());
  if (!report || (report->kind != kCannotStart && report->kind != kRefused)) return std::nullopt;
  if (report->kind == kRefused) return report->message;
  return to_text(Problem{.where = "sim", .expected = "a program that starts", .got = report->message});
}

void RankChildren::add(int rank, StartedRank started) {
  ranks_.push_back({.rank = rank,
                    .pid = started.pid,
                    .report = launch::PipeLines(std::move(started.report)),
                    .started = RankChild::Clock::now()});
}

void RankChildren::add_to(std::vector<pollfd>& waiting) const {
  for (const auto& rank : ranks_) {
    if (rank.report.descriptor() >= 0) waiting.push_back({.fd = rank.report.descriptor(), .events = POLLIN});
  }
}

void RankChildren::read_reports() {
  for (auto& rank : ranks_) rank.report.read_available();
}

std::vector<EndedProcess> RankChildren::reap() {
  std::vector<EndedProcess> ended;
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    ended.push_back({.pid = pid, .end = end_of(status)});
    const auto found = std::ranges::find(ranks_, pid, &RankChild::pid);
    if (found == ranks_.end() || found->end) continue;  // an orphan
    found->report.finish();
    found->end = ended.back().end;
    found->ended = RankChild::Clock::now();
  }
  return ended;
}

void RankChildren::end_by(int signal) {
  for (auto& rank : ranks_) {
    if (rank.end) continue;
    rank.was_told_to_end = true;
    kill(-rank.pid, signal);
    kill(-rank.pid, SIGCONT);  // or one that is stopped would keep it for later
  }
}

bool RankChildren::have_all_ended() const {
  return std::ranges::all_of(ranks_, [](const auto& rank) { return rank.end.has_value(); });
}

bool RankChildren::is_running(int rank) const {
  const auto* found = find(rank);
  return found != nullptr && !found->end;
}

const RankChild* RankChildren::find(int rank) const {
  const auto found = std::ranges::find(ranks_, rank, &RankChild::rank);
  return found == ranks_.end() ? nullptr : &*found;
}

const RankChild* RankChildren::first_failed() const {
  const RankChild* first = nullptr;
  for (const auto& rank : ranks_) {
    if (!rank.end || rank.end->is_well()) continue;
    if (first == nullptr || rank.ended < first->ended) first = &rank;
  }
  return first;
}

}  // namespace lockstep::sim
