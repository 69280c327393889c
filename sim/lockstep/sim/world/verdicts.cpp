#include "lockstep/sim/world/verdicts.h"

#include <csignal>
#include <cstring>
#include <map>

#include "lockstep/base/exit_code.h"

namespace lockstep::sim {
namespace {

constexpr int kVersion = 1;

VerdictJson verdict_of(const char* word, const std::string& cause, VerdictJson ranks) {
  return {{"v", kVersion}, {"verdict", word}, {"cause", cause}, {"ranks", std::move(ranks)}};
}

std::string name_of(int signal) { return std::to_string(signal) + " (" + strsignal(signal) + ")"; }

// The rank that all others wait for, as far as that can be told by who is blocked.
std::optional<int> only_one_not_blocked(const VerdictJson& ranks) {
  std::optional<int> found;
  for (const auto& rank : ranks) {
    if (rank.value("state", "") != "running") continue;
    if (found) return std::nullopt;
    found = rank.value("rank", 0);
  }
  return found;
}

}  // namespace

std::string to_text(const RankEnd& end) {
  if (end.signal != 0) return "was ended by signal " + name_of(end.signal);
  return "ended with exit code " + std::to_string(end.exit_code);
}

VerdictJson ok_verdict(const std::string& cause) { return verdict_of("ok", cause, VerdictJson::array()); }

VerdictJson rank_failed_verdict(std::optional<int> rank, const RankEnd& end, const std::string& message,
                                VerdictJson ranks) {
  const auto who = rank ? "rank " + std::to_string(*rank) : std::string("the command");
  auto verdict =
      verdict_of("rank_failed", who + " " + to_text(end) + (message.empty() ? "" : ": " + message), std::move(ranks));
  if (rank) verdict["first"] = *rank;
  return verdict;
}

VerdictJson straggler_verdict(std::chrono::milliseconds limit, VerdictJson ranks) {
  const auto only = only_one_not_blocked(ranks);
  const auto seconds = nlohmann::json(static_cast<double>(limit.count()) / 1000).dump();
  auto verdict =
      verdict_of("straggler", "the run passed the limit that was set for it, " + seconds + " s", std::move(ranks));
  if (only) verdict["hint"] = "All wait but rank " + std::to_string(*only) + ": look at what that one does.";
  return verdict;
}

VerdictJson unchecked_verdict(VerdictJson ranks, bool is_python) {
  if (is_python) {
    return verdict_of("unchecked",
                      "the Python ranks made no checked group: is torch.distributed with gloo used, and could the "
                      "extension be built? see the ranks' warnings",
                      std::move(ranks));
  }
  auto verdict = verdict_of("unchecked", "the program ended well, but no rank ever made a group that is checked",
                            std::move(ranks));
  verdict["hint"] =
      "Make process groups with Lockstep (PartialState, Accelerator, comm::ProcessGroup), and leave the backend to "
      "LOCKSTEP_BACKEND: a program that names another one is not watched.";
  return verdict;
}

VerdictJson left_behind_verdict(const std::vector<std::string>& left, VerdictJson ranks) {
  auto verdict = verdict_of("left_behind",
                            "all ranks have ended, and this was still there: " + left.front() +
                                (left.size() == 1 ? "" : " and " + std::to_string(left.size() - 1) + " more"),
                            std::move(ranks));
  verdict["left"] = left;
  return verdict;
}

VerdictJson interrupted_verdict(int signal, VerdictJson ranks) {
  auto verdict = verdict_of("interrupted", "interrupted by signal " + name_of(signal), std::move(ranks));
  verdict["signal"] = signal;
  return verdict;
}

VerdictJson debugger_left_verdict(int rank, VerdictJson ranks) {
  auto verdict =
      verdict_of("interrupted", "rank " + std::to_string(rank) + " ended in its debugger before it made a group",
                 std::move(ranks));
  verdict["signal"] = SIGINT;
  return verdict;
}

int exit_code_of(const VerdictJson& verdict) {
  static const std::map<std::string, ExitCode> codes = {
      {"ok", ExitCode::ok},
      {"deadlock", ExitCode::deadlock},
      {"mismatch", ExitCode::mismatch},
      {"rank_failed", ExitCode::rank_failed},
      {"divergence", ExitCode::divergence},
      {"ledger", ExitCode::divergence},
      {"straggler", ExitCode::straggler},
      {"left_behind", ExitCode::left_behind},
      {"unchecked", ExitCode::unchecked},
  };
  const auto word = verdict.value("verdict", "");
  if (word == "interrupted") return exit_code_of_signal(verdict.value("signal", SIGINT));
  const auto found = codes.find(word);
  return to_int(found == codes.end() ? ExitCode::not_well : found->second);
}

VerdictJson& rank_in(VerdictJson& verdict, int rank, const std::string& state) {
  auto& ranks = verdict["ranks"];
  if (!ranks.is_array()) ranks = VerdictJson::array();
  for (auto& element : ranks) {
    if (element.is_object() && element.value("rank", -1) == rank) return element;
  }
  ranks.push_back({{"rank", rank}, {"state", state}});
  return ranks.back();
}

}  // namespace lockstep::sim
