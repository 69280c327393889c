#include "lockstep/sim/report/verdict.h"

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace lockstep::sim::report {

namespace {

using Json = nlohmann::json;

// In the order of the enumerators.
constexpr std::array<std::string_view, 10> kOutcomes = {"ok",          "deadlock",   "mismatch",  "rank_failed",
                                                        "divergence",  "ledger",     "straggler", "unchecked",
                                                        "left_behind", "interrupted"};
constexpr std::array<std::string_view, 5> kStates = {"blocked", "running", "paused", "ended", "failed"};

[[noreturn]] void refuse(const std::string& expected, const std::string& got) {
  throw std::invalid_argument("verdict document: expected " + expected + ", got " + got);
}

template <class Enum, std::size_t Size>
Enum enum_of(const std::array<std::string_view, Size>& words, const std::string& word, const char* what) {
  for (std::size_t i = 0; i < Size; ++i) {
    if (words[i] == word) return static_cast<Enum>(i);
  }
  refuse(what, "\"" + word + "\"");
}

// A field that is missing or null leaves the target as it is.

template <class Value>
void read(const Json& from, const char* name, Value& to) {
  const auto field = from.find(name);
  if (field != from.end() && !field->is_null()) to = field->template get<Value>();
}

template <class Value>
void read(const Json& from, const char* name, std::optional<Value>& to) {
  const auto field = from.find(name);
  if (field != from.end() && !field->is_null()) to = field->template get<Value>();
}

void read(const Json& from, const char* name, std::optional<Place>& to) {
  const auto field = from.find(name);
  if (field == from.end() || field->is_null()) return;
  Place place;
  read(*field, "file", place.file);
  read(*field, "line", place.line);
  read(*field, "function", place.function);
  read(*field, "module", place.module);
  read(*field, "offset", place.offset);
  read(*field, "remark", place.remark);
  to = std::move(place);
}

RankStanding read_standing(const Json& from) {
  if (!from.is_object()) refuse("an object for a rank", from.dump());
  RankStanding standing;
  standing.rank = from.at("rank").get<int>();
  standing.state = enum_of<RankState>(kStates, from.at("state").get<std::string>(), "a rank's state");
  read(from, "op", standing.op);
  read(from, "seq", standing.seq);
  read(from, "group", standing.group);
  read(from, "dtype", standing.dtype);
  read(from, "shapes", standing.shapes);
  read(from, "tensors", standing.tensors);
  read(from, "reduce_op", standing.reduce_op);
  read(from, "peer", standing.peer);
  read(from, "tag", standing.tag);
  read(from, "key", standing.key);
  read(from, "step", standing.step);
  read(from, "micro_step", standing.micro_step);
  read(from, "phase", standing.phase);
  read(from, "label", standing.label);
  read(from, "place", standing.place);
  read(from, "waits_at", standing.waits_at);
  read(from, "waits_for", standing.waits_for);
  read(from, "kind", standing.kind);
  read(from, "message", standing.message);
  read(from, "report", standing.report);
  read(from, "failed_at", standing.failed_at);
  read(from, "exit_code", standing.exit_code);
  read(from, "signal", standing.signal);
  read(from, "stderr", standing.errors);
  return standing;
}

Verdict read_verdict(const Json& from) {
  if (!from.is_object()) refuse("a JSON object", from.dump());
  int version = Verdict::kVersion;
  read(from, "v", version);
  if (version != Verdict::kVersion) {
    refuse("version 1", std::to_string(version) + "; read it with the version of Lockstep that wrote it");
  }
  Verdict verdict;
  verdict.outcome = enum_of<Outcome>(kOutcomes, from.at("verdict").get<std::string>(), "a verdict of version 1");
  read(from, "cause", verdict.cause);
  if (const auto ranks = from.find("ranks"); ranks != from.end()) {
    for (const Json& rank : *ranks) verdict.ranks.push_back(read_standing(rank));
  }
  read(from, "first", verdict.first);
  std::vector<std::array<int, 2>> edges;
  read(from, "edges", edges);
  for (const auto& [waiting, awaited] : edges) verdict.edges.push_back({.from = waiting, .to = awaited});
  read(from, "since_stall_s", verdict.since_stall_s);
  read(from, "seed", verdict.seed);
  read(from, "signal", verdict.signal);
  read(from, "left", verdict.left);
  read(from, "hint", verdict.hint);
  read(from, "replay", verdict.replay);
  read(from, "notes", verdict.notes);
  read(from, "command", verdict.command);
  return verdict;
}

}  // namespace

std::string_view to_word(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }
std::string_view to_word(RankState state) { return kStates[static_cast<std::size_t>(state)]; }

Verdict parse_verdict(std::string_view json) {
  try {
    return read_verdict(Json::parse(json));
  } catch (const Json::exception& error) {  // they all mean that this is no such document
    refuse("a document of version 1", error.what());
  }
}

}  // namespace lockstep::sim::report
