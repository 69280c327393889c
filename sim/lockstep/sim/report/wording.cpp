#include "lockstep/sim/report/wording.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace lockstep::sim::report {

namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::string in_seconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f s", seconds);
  return text.data();
}

std::string joined(const std::vector<std::string>& parts, const char* separator = ", ") {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const auto size : shape) sizes.push_back(std::to_string(size));
  return "[" + joined(sizes) + "]";
}

std::string peer_text(const RankStanding& standing) {
  const std::string peer = standing.peer ? "rank " + std::to_string(*standing.peer) : "any rank";
  if (standing.op == "send") return " to " + peer;
  if (standing.op == "recv") return " from " + peer;
  return standing.peer ? " with root " + std::to_string(*standing.peer) : "";
}

std::string end_text(const RankStanding& standing) {
  if (standing.signal) {
    const char* name = strsignal(*standing.signal);
    return "ended by signal " + std::to_string(*standing.signal) + " (" + (name != nullptr ? name : "unknown") + ")";
  }
  return standing.exit_code.value_or(0) != 0 ? "exit code " + std::to_string(*standing.exit_code) : "";
}

// All that the table and the details show.
bool are_alike(const RankStanding& a, const RankStanding& b) {
  RankStanding as_a = b;
  as_a.rank = a.rank;
  as_a.waits_for = a.waits_for;  // each waits for the others: never equal
  return a == as_a;
}

// As a shell reads it back, on one line.
std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  const bool has_control = std::any_of(word.begin(), word.end(), is_control);
  std::string quoted = has_control ? "$'" : "'";
  for (const char c : word) {
    if (has_control && is_control(c)) {
      std::array<char, 5> code{};
      std::snprintf(code.data(), code.size(), "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
      quoted += code.data();
    } else if (has_control && (c == '\'' || c == '\\')) {
      quoted += std::string("\\") + c;
    } else {
      quoted += c == '\'' ? "'\\''" : std::string(1, c);
    }
  }
  return quoted + "'";
}

bool lacks_line(const std::optional<Place>& place) { return place && place->file.empty() && !place->module.empty(); }

}  // namespace

std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = c == '\n' || c == '\t' || c == '\r';
    line += is_space ? ' ' : is_control(c) ? '?' : c;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string list_ranks(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (auto begin = ranks.begin(); begin != ranks.end();) {
    auto last = begin;
    while (last + 1 != ranks.end() && *(last + 1) == *last + 1) ++last;
    const auto length = last - begin + 1;
    if (length >= 3) {
      parts.push_back(std::to_string(*begin) + "-" + std::to_string(*last));
    } else {
      for (auto rank = begin; rank <= last; ++rank) parts.push_back(std::to_string(*rank));
    }
    begin = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + joined(parts);
}

std::string call_text(const RankStanding& standing) {
  if (standing.op.empty()) return "";
  std::string text = standing.op;
  if (!standing.key.empty()) text += " for '" + standing.key + "'";
  if (standing.seq) text += " #" + std::to_string(*standing.seq);
  text += peer_text(standing);
  if (!standing.group.empty()) text += " of " + standing.group;
  if (standing.tag.value_or(0) != 0) text += ", tag " + std::to_string(*standing.tag);
  return one_line(text);
}

std::string standing_text(const RankStanding& standing) {
  const std::string call = call_text(standing);
  return standing.state == RankState::blocked || call.empty() ? call : "after " + call;
}

std::string tensors_text(const RankStanding& standing) {
  if (!standing.tensors.empty()) return one_line(standing.tensors);
  std::vector<std::string> tensors;
  for (const auto& shape : standing.shapes) {
    tensors.push_back((standing.dtype.empty() ? "" : standing.dtype + " ") + shape_text(shape));
  }
  return tensors.empty() ? standing.dtype : joined(tensors);
}

std::string step_text(const RankStanding& standing) {
  if (!standing.step) return "";
  const auto micro_step = standing.micro_step.value_or(0);
  return "step " + std::to_string(*standing.step) +
         (micro_step > 0 ? ", micro-step " + std::to_string(micro_step) : "");
}

std::string place_text(const RankStanding& standing) {
  if (standing.place) {
    std::string text = to_short_text(*standing.place);
    if (standing.waits_at && *standing.waits_at != *standing.place) {
      text += ", waits at " + to_short_text(*standing.waits_at);
    }
    return one_line(text);
  }
  const auto& other = standing.failed_at ? standing.failed_at : standing.waits_at;
  if (other) return one_line(to_short_text(*other));
  const bool is_known = !standing.phase.empty() && standing.phase != "other" && standing.step;
  return is_known ? one_line(standing.phase) + " of step " + std::to_string(*standing.step) : "";
}

std::string label_text(const RankStanding& standing) {
  constexpr std::size_t kShown = 3;
  const auto& names = standing.label;
  if (names.size() <= kShown) return one_line(joined(names));
  const std::vector<std::string> shown(names.begin(), names.begin() + kShown);
  return one_line(joined(shown)) + " and " + std::to_string(names.size() - kShown) + " more";
}

std::string failure_text(const RankStanding& standing) {
  std::vector<std::string> parts;
  if (!standing.message.empty()) {
    parts.push_back((standing.kind.empty() ? "" : standing.kind + ": ") + standing.message);
  } else if (!standing.report.empty()) {
    parts.push_back(standing.report);
  }
  if (standing.failed_at) parts.push_back("at " + to_short_text(*standing.failed_at));
  if (const auto end = end_text(standing); !end.empty()) parts.push_back(end);
  return one_line(joined(parts));
}

std::vector<std::string> facts(const Verdict& verdict) {
  std::vector<std::string> sentences;
  if (verdict.first) sentences.push_back("It began at rank " + std::to_string(*verdict.first) + ".");
  // Of a rank that failed nobody measures it: the document has a 0.
  const bool is_measured = verdict.since_stall_s && verdict.outcome != Outcome::rank_failed;
  if (is_measured) sentences.push_back("Found " + in_seconds(*verdict.since_stall_s) + " after it began.");
  if (verdict.seed) sentences.push_back("The seed was " + std::to_string(*verdict.seed) + ".");
  return sentences;
}

std::string command_text(const Verdict& verdict) {
  std::string text;
  for (const std::string& word : verdict.command) {
    text += text.empty() ? shell_quoted(word.substr(word.rfind('/') + 1)) : " " + shell_quoted(word);
  }
  return text;
}

std::string line_tables_text(const Verdict& verdict) {
  for (const RankStanding& standing : verdict.ranks) {
    for (const auto* place : {&standing.place, &standing.waits_at, &standing.failed_at}) {
      if (lacks_line(*place)) return "Build with -g1 for file and line in place of module and offset.";
    }
  }
  return "";
}

std::vector<RankGroup> group_alike(const Verdict& verdict) {
  std::vector<RankGroup> groups;
  for (const RankStanding& standing : verdict.ranks) {
    const auto alike = std::find_if(groups.begin(), groups.end(),
                                    [&](const RankGroup& group) { return are_alike(*group.standing, standing); });
    if (alike != groups.end()) {
      alike->ranks.push_back(standing.rank);
    } else {
      groups.push_back({.ranks = {standing.rank}, .standing = &standing});
    }
  }
  for (RankGroup& group : groups) std::sort(group.ranks.begin(), group.ranks.end());
  return groups;
}

}  // namespace lockstep::sim::report
