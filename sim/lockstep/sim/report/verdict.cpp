#include "lockstep/sim/report/verdict.h"

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace lockstep::sim::report {

namespace {

using Json = nlohmann::ordered_json;

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

// Reading: a field that is missing or null leaves the target as it is.

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
  return verdict;
}

// The JSON library's errors, as ours: they all mean that this is no such document.
template <class Read>
auto parse(std::string_view text, Read read_document) {
  try {
    return read_document(Json::parse(text));
  } catch (const Json::exception& error) {
    refuse("a document of version 1", error.what());
  }
}

// Writing: an empty field is left out.

template <class Value>
void write(Json& to, const char* name, const Value& value) {
  if (!value.empty()) to[name] = value;
}

template <class Value>
void write(Json& to, const char* name, const std::optional<Value>& value) {
  if (value) to[name] = *value;
}

void write(Json& to, const char* name, const std::optional<Place>& value) {
  if (!value) return;
  Json place = Json::object();
  write(place, "file", value->file);
  if (value->line > 0) place["line"] = value->line;
  write(place, "function", value->function);
  write(place, "module", value->module);
  if (value->offset > 0) place["offset"] = value->offset;
  write(place, "remark", value->remark);
  to[name] = std::move(place);
}

Json json_of(const RankStanding& standing) {
  Json json = {{"rank", standing.rank}, {"state", to_word(standing.state)}};
  write(json, "op", standing.op);
  write(json, "seq", standing.seq);
  write(json, "group", standing.group);
  write(json, "dtype", standing.dtype);
  write(json, "shapes", standing.shapes);
  write(json, "tensors", standing.tensors);
  write(json, "reduce_op", standing.reduce_op);
  write(json, "peer", standing.peer);
  write(json, "tag", standing.tag);
  write(json, "key", standing.key);
  write(json, "step", standing.step);
  write(json, "micro_step", standing.micro_step);
  write(json, "phase", standing.phase);
  write(json, "label", standing.label);
  write(json, "place", standing.place);
  write(json, "waits_at", standing.waits_at);
  write(json, "waits_for", standing.waits_for);
  write(json, "kind", standing.kind);
  write(json, "message", standing.message);
  write(json, "report", standing.report);
  write(json, "failed_at", standing.failed_at);
  write(json, "exit_code", standing.exit_code);
  write(json, "signal", standing.signal);
  write(json, "stderr", standing.errors);
  return json;
}

// Text of a user's program need not be UTF-8.
std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string_view to_word(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }
std::string_view to_word(RankState state) { return kStates[static_cast<std::size_t>(state)]; }

Verdict parse_verdict(std::string_view json) { return parse(json, read_verdict); }
RankStanding parse_standing(std::string_view json) { return parse(json, read_standing); }

std::string to_json(const RankStanding& standing) { return dumped(json_of(standing)); }

std::string to_json(const Verdict& verdict) {
  Json json = {{"v", Verdict::kVersion}, {"verdict", to_word(verdict.outcome)}, {"cause", verdict.cause}};
  json["ranks"] = Json::array();
  for (const RankStanding& standing : verdict.ranks) json["ranks"].push_back(json_of(standing));
  write(json, "first", verdict.first);
  json["edges"] = Json::array();
  for (const auto& [waiting, awaited] : verdict.edges) json["edges"].push_back({waiting, awaited});
  write(json, "since_stall_s", verdict.since_stall_s);
  write(json, "seed", verdict.seed);
  write(json, "signal", verdict.signal);
  write(json, "left", verdict.left);
  write(json, "hint", verdict.hint);
  write(json, "replay", verdict.replay);
  write(json, "notes", verdict.notes);
  return dumped(json);
}

}  // namespace lockstep::sim::report
