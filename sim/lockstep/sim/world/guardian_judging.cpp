// How the guardian reaches the verdict: by what the ranks' monitors say, by what a parent knows, and by what is left.
#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/sim/world/command.h"
#include "lockstep/sim/world/guardian.h"
#include "lockstep/sim/world/processes.h"

namespace lockstep::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr auto kForAVerdict = seconds(1);           // a rank has failed: the others may know why
constexpr auto kForEarlyEnds = seconds(5);          // ranks that have made no group yet may be about to
constexpr auto kForStragglers = milliseconds(500);  // helpers that notice their rank's end

}  // namespace

std::optional<VerdictJson> Guardian::watch() {
  while (true) {
    turn();
    if (interrupted_by_ != 0) return imposed(interrupted_verdict(interrupted_by_, standings()));
    if (auto verdict = verdict_of_board()) return verdict;
    if (auto verdict = verdict_of_failure()) return imposed(std::move(*verdict));
    if (auto verdict = verdict_of_debugger()) return imposed(std::move(*verdict));
    look_for_early_ends();
    const auto& limit = orders_.options.timeout;
    if (limit && active_ > *limit) return imposed(straggler_verdict(*limit, standings()));
    if (ranks_.first_failed() == nullptr && is_over()) {
      view_->refresh();  // after the last one's end: a verdict that it had published is there by now
      return verdict_of_board();
    }
  }
}

// The ranks end with it.
VerdictJson Guardian::imposed(VerdictJson verdict) {
  view_->impose(verdict.dump());
  return with_notes(std::move(verdict));
}

// Those of a board's own verdict stand in it already.
VerdictJson Guardian::with_notes(VerdictJson verdict) const {
  for (const auto& note : view_->notes()) verdict["notes"].push_back(note);
  return verdict;
}

std::optional<VerdictJson> Guardian::verdict_of_board() const {
  const auto text = view_->verdict();
  if (!text) return std::nullopt;
  auto verdict = VerdictJson::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (verdict.is_object()) return verdict;
  throw RuntimeError({.where = "sim", .expected = "a verdict document on the board", .got = *text});
}

// When all have ended nobody is left who could say more.
std::optional<VerdictJson> Guardian::verdict_of_failure() const {
  const auto* failed = ranks_.first_failed();
  if (failed == nullptr) return std::nullopt;
  if (const auto reason = failed->refusal()) throw InvalidArgument(*reason);
  if (!ranks_.have_all_ended() && Clock::now() - failed->ended < kForAVerdict) return std::nullopt;
  const auto rank = orders_.options.num_ranks ? std::optional(failed->rank) : std::nullopt;
  return rank_failed_verdict(rank, *failed->end, failed->reported(), standings());
}

// Who quits the debugger before its rank made a group wants the run to be over: the others would wait for that rank.
std::optional<VerdictJson> Guardian::verdict_of_debugger() const {
  const auto& debugged = orders_.options.debugged;
  const auto* rank = debugged ? ranks_.find(debugged->rank) : nullptr;
  if (rank == nullptr || !rank->end || ranks_.have_all_ended() || has_joined(rank->rank)) return std::nullopt;
  return debugger_left_verdict(rank->rank, standings());
}

bool Guardian::has_joined(int rank) const {
  const auto seen = view_->ranks();
  return std::ranges::find(seen, rank, &SeenRank::rank) != seen.end();
}

// A rank that ends before it makes a group: the others may need it for theirs.
void Guardian::look_for_early_ends() {
  if (!orders_.options.num_ranks) return;
  for (const auto& rank : ranks_.all()) {
    if (!rank.end || !rank.end->is_well()) continue;
    view_->set_ended(rank.rank);
    const bool is_early = Clock::now() - rank.ended > kForEarlyEnds && view_->ranks().empty();
    if (is_early && !std::exchange(is_early_end_told_, true)) {
      tell("rank " + std::to_string(rank.rank) +
           " has ended well before it made a group, and the others have made none: if they need it for that, they wait "
           "in vain");
    }
  }
}

VerdictJson Guardian::verdict_of_end() {
  const auto seen = view_->ranks();
  const bool is_checked = orders_.options.check == "off" || std::ranges::any_of(seen, &SeenRank::is_checked);
  auto where = standings();
  const auto left = find_and_end_leftovers();
  if (!is_checked) {
    auto verdict = unchecked_verdict(std::move(where), looks_like_python(orders_.options.argv));
    for (const auto& item : left) verdict["notes"].push_back("left behind, and ended: " + item);
    return verdict;
  }
  if (!left.empty()) return left_behind_verdict(left, std::move(where));
  const auto& num_ranks = orders_.options.num_ranks;
  return ok_verdict(num_ranks ? std::to_string(*num_ranks) + (*num_ranks == 1 ? " rank" : " ranks") + " ended well"
                              : "the command ended well");
}

// A command may end before the ranks that it has started; the run lasts as long as one of them.
bool Guardian::is_over() const {
  if (!ranks_.have_all_ended()) return false;
  if (orders_.options.num_ranks) return true;
  const auto seen = view_->ranks();
  if (seen.empty()) return true;
  const auto living = descendants_of_this_process();
  return std::ranges::none_of(seen, [&](const SeenRank& rank) {
    return std::ranges::find(living, rank.pid, &ProcessInfo::pid) != living.end();
  });
}

std::vector<Guardian::SeenProcess> Guardian::processes_of_ranks() const {
  std::map<int, pid_t> processes;
  if (orders_.options.num_ranks) {
    for (const auto& rank : ranks_.all()) processes[rank.rank] = rank.pid;
  }
  // What is on the board is the rank itself; what we have started may be a script that started it.
  for (const auto& seen : view_->ranks()) processes[seen.rank] = seen.pid;
  std::vector<SeenProcess> found;
  for (const auto& [rank, pid] : processes) found.push_back({.rank = rank, .pid = pid});
  return found;
}

VerdictJson Guardian::standings() const {
  auto standings = VerdictJson::array();
  for (const auto& process : processes_of_ranks()) {
    const auto text = view_->standing_of(process.rank);
    auto standing = text ? VerdictJson::parse(*text, nullptr, /*allow_exceptions=*/false) : VerdictJson();
    if (!standing.is_object()) standing = {{"rank", process.rank}, {"state", "running"}};
    const auto* rank = orders_.options.num_ranks ? ranks_.find(process.rank) : nullptr;
    if (rank != nullptr && rank->end) standing["state"] = rank->end->is_well() ? "ended" : "failed";
    standings.push_back(std::move(standing));
  }
  return standings;
}

std::vector<std::string> Guardian::find_and_end_leftovers() {
  const auto deadline = Clock::now() + kForStragglers;
  while (!children_of_this_process().empty() && Clock::now() < deadline) turn();
  std::vector<std::string> left;
  for (const auto& process : descendants_of_this_process()) {
    left.push_back("process " + std::to_string(process.pid) + ": " + process.command);
  }
  end_descendants({});
  view_->remove_names();  // the boards' own names are no leftovers of the program
  for (const auto& name : remove_shared_memory_of(orders_.job)) left.push_back("shared memory /dev/shm/" + name);
  return left;
}

}  // namespace lockstep::sim
