#include "lockstep/sim/gallery/generated/summary.h"

#include <algorithm>
#include <charconv>
#include <iomanip>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "lockstep/sim/report/verdict.h"

namespace lockstep::sim::generated {
namespace {

// The number in "lockstep::sim::generated::call_at_017".
std::optional<int> line_of(const std::optional<Place>& place) {
  if (!place) return std::nullopt;
  const auto& function = place->function;
  const auto site = function.rfind(kCallSite);
  if (site == std::string::npos) return std::nullopt;
  int line = 0;
  const auto* digits = function.data() + site + kCallSite.size();
  const auto parsed = std::from_chars(digits, function.data() + function.size(), line);
  return parsed.ec == std::errc() ? std::optional(line) : std::nullopt;
}

std::optional<Verdict> verdict_of(report::Outcome outcome) {
  switch (outcome) {
    case report::Outcome::mismatch: return Verdict::mismatch;
    case report::Outcome::deadlock: return Verdict::deadlock;
    case report::Outcome::rank_failed: return Verdict::rank_failed;
    default: return std::nullopt;
  }
}

std::string list(const std::set<Outcome>& outcomes) {
  std::string text;
  for (const auto& outcome : outcomes) text += (text.empty() ? "" : " or ") + to_text(outcome);
  return text;
}

// The document's own words where it is none that the model knows.
std::string told(const std::optional<Outcome>& outcome, const std::optional<std::string>& verdict_json) {
  if (outcome) return to_text(*outcome);
  return verdict_json ? verdict_json->substr(0, 120) : "nothing";
}

}  // namespace

std::optional<Outcome> outcome_told_by(std::string_view verdict_json) {
  try {
    const auto document = report::parse_verdict(verdict_json);
    const auto verdict = verdict_of(document.outcome);
    if (!verdict) return std::nullopt;
    Outcome outcome{.verdict = *verdict, .rank = document.first};
    for (const auto& standing : document.ranks) {
      if (standing.rank == document.first) outcome.line = line_of(standing.place);
    }
    return outcome;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

Judgement judge(const Case& one, const std::optional<std::string>& verdict_json, double seconds) {
  const auto outcome = verdict_json ? outcome_told_by(*verdict_json) : std::nullopt;
  const auto is_expected = [&](const auto& agrees) { return outcome && std::ranges::any_of(one.expected, agrees); };
  Judgement judgement{.seed = one.seed, .seconds = seconds, .planted = one.fault.rank};
  judgement.is_found = is_expected([&](const Outcome& each) { return each.verdict == outcome->verdict; });
  judgement.is_rank_right =
      is_expected([&](const Outcome& each) { return each.verdict == outcome->verdict && each.rank == outcome->rank; });
  judgement.is_line_right = is_expected([&](const Outcome& each) { return each == *outcome; });
  if (outcome) judgement.named = outcome->rank;
  judgement.text =
      describe(one.fault, one.healthy) + "; expected " + list(one.expected) + "; told " + told(outcome, verdict_json);
  return judgement;
}

void Summary::add(const Judgement& judgement) {
  seconds_.push_back(judgement.seconds);
  num_found_ += judgement.is_found ? 1 : 0;
  num_rank_right_ += judgement.is_rank_right ? 1 : 0;
  num_line_right_ += judgement.is_line_right ? 1 : 0;
  if (judgement.named) ++(*judgement.named == judgement.planted ? num_planted_named_ : num_other_named_);
  if (judgement.is_line_right) return;
  misses_.push_back("seed " + std::to_string(judgement.seed) + ": " + judgement.text);
}

void Summary::add_healthy(std::uint64_t seed, const std::optional<std::string>& verdict_json) {
  ++num_healthy_;
  if (!verdict_json) return;
  try {
    if (report::parse_verdict(*verdict_json).outcome == report::Outcome::ok) return;
  } catch (const std::invalid_argument&) {  // not even a document: shown as it is
  }
  ++num_false_;
  misses_.push_back("seed " + std::to_string(seed) + ": healthy; told " +
                    told(outcome_told_by(*verdict_json), verdict_json));
}

bool Summary::is_well() const {
  return num_found_ == num_judged() && is_nearly_all(num_rank_right_) && is_nearly_all(num_line_right_) &&
         num_false_ == 0;
}

double Summary::median_s() const {
  if (seconds_.empty()) return 0;
  auto sorted = seconds_;
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

double Summary::slowest_s() const { return seconds_.empty() ? 0 : std::ranges::max(seconds_); }

std::string Summary::to_text() const {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  const auto row = [&text](const char* name, const auto& value) {
    text << std::left << std::setw(26) << name << value << '\n';
  };
  text << std::fixed << std::setprecision(2);
  if (num_judged() > 0) {
    row("faults", num_judged());
    row("found", num_found_);
    row("rank right", num_rank_right_);
    row("line right", num_line_right_);
    row("named the faulty rank", num_planted_named_);
    row("named another rank", num_other_named_);
    row("named none", num_judged() - num_planted_named_ - num_other_named_);
    row("seconds, median", median_s());
    row("seconds, slowest", slowest_s());
    row("harmless, not run", num_harmless_);
  }
  if (num_healthy_ > 0) {
    row("healthy runs", num_healthy_);
    row("false verdicts", num_false_);
  }
  for (const auto& miss : misses_) text << "missed: " << miss << '\n';
  return text.str();
}

}  // namespace lockstep::sim::generated
