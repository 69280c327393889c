#include "lockstep/sim/gallery/generated/program.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace lockstep::sim::generated {
namespace {

using Json = nlohmann::ordered_json;

// In the order of the enumerators.
constexpr std::array<std::string_view, 16> kActions = {
    "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather",     "scatter", "reduce",
    "barrier",    "send",      "receive",    "wait",           "store_set",  "store_wait", "leave",   "fail"};
constexpr std::array<std::string_view, 4> kDtypes = {"float32", "float64", "int32", "int64"};
constexpr std::array<std::string_view, 4> kReductions = {"sum", "product", "min", "max"};

[[noreturn]] void refuse(const std::string& expected, const std::string& got) {
  throw std::invalid_argument("generated program: expected " + expected + ", got " + got);
}

void require(bool holds, const std::string& expected, int got) {
  if (!holds) refuse(expected, std::to_string(got));
}

template <typename Enum, std::size_t Size>
Enum from_word(const std::array<std::string_view, Size>& words, const std::string& word) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) refuse("a known word", "'" + word + "'");
  return static_cast<Enum>(found - words.begin());
}

// A field that has its default is left out.
Json json_of(const Call& call) {
  const Call usual;
  Json json = {{"line", call.line}, {"action", to_word(call.action)}};
  const auto write = [&json](const char* name, const auto& value, const auto& usual_value) {
    if (value != usual_value) json[name] = value;
  };
  write("group", call.group, usual.group);
  if (has_tensor(call.action)) json["dtype"] = to_word(call.dtype);
  write("shape", call.shape, usual.shape);
  if (has_reduction(call.action)) json["reduction"] = to_word(call.reduction);
  write("peer", call.peer, usual.peer);
  write("tag", call.tag, usual.tag);
  write("async", call.asynchronous, usual.asynchronous);
  write("awaited", call.awaited, usual.awaited);
  write("key", call.key, usual.key);
  write("label", call.label, usual.label);
  write("delay_ms", call.delay_ms, usual.delay_ms);
  return json;
}

Call call_from(const Json& json) {
  const Call usual;
  return {.line = json.at("line").get<int>(),
          .action = from_word<Action>(kActions, json.at("action").get<std::string>()),
          .group = json.value("group", usual.group),
          .dtype = from_word<Dtype>(kDtypes, json.value("dtype", std::string(kDtypes.front()))),
          .shape = json.value("shape", usual.shape),
          .reduction = from_word<Reduction>(kReductions, json.value("reduction", std::string(kReductions.front()))),
          .peer = json.value("peer", usual.peer),
          .tag = json.value("tag", usual.tag),
          .asynchronous = json.value("async", usual.asynchronous),
          .awaited = json.value("awaited", usual.awaited),
          .key = json.value("key", usual.key),
          .label = json.value("label", usual.label),
          .delay_ms = json.value("delay_ms", usual.delay_ms)};
}

void check(const Program& program) {
  require(static_cast<int>(program.ranks.size()) == program.world_size, "the calls of each rank of the world",
          static_cast<int>(program.ranks.size()));
  require(!program.groups.empty(), "at least the world as a group", 0);
  for (const auto& group : program.groups) {
    for (const int rank : group.ranks) require(rank >= 0 && rank < program.world_size, "ranks of the world", rank);
  }
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    for (const auto& call : program.ranks[rank]) {
      require(call.line >= 0 && call.line < kMaxLines, "a line below " + std::to_string(kMaxLines), call.line);
      require(call.group >= 0 && call.group < static_cast<int>(program.groups.size()), "a group of the program",
              call.group);
      const auto& group = program.groups[static_cast<std::size_t>(call.group)];
      const bool is_theirs = !is_checked(call.action) || is_member(group, static_cast<int>(rank));
      require(is_theirs, "calls of a group's members alone", static_cast<int>(rank));
      const bool names_peer = has_root(call.action) || is_point_to_point(call.action);
      require(!names_peer || is_member(group, call.peer), "a peer within the group", call.peer);
    }
  }
}

}  // namespace

std::string_view to_word(Action action) { return kActions.at(static_cast<std::size_t>(action)); }
std::string_view to_word(Dtype dtype) { return kDtypes.at(static_cast<std::size_t>(dtype)); }
std::string_view to_word(Reduction reduction) { return kReductions.at(static_cast<std::size_t>(reduction)); }

std::int64_t num_elements(const Call& call) {
  std::int64_t count = 1;
  for (const auto size : call.shape) count *= size;
  return count;
}

bool is_member(const Group& group, int rank) { return std::ranges::find(group.ranks, rank) != group.ranks.end(); }

std::string to_json(const Program& program) {
  Json json = {{"v", 1}, {"world_size", program.world_size}};
  for (const auto& group : program.groups) json["groups"].push_back({{"name", group.name}, {"ranks", group.ranks}});
  json["ranks"] = Json::array();
  for (const auto& calls : program.ranks) {
    auto list = Json::array();
    for (const auto& call : calls) list.push_back(json_of(call));
    json["ranks"].push_back(std::move(list));
  }
  return json.dump();
}

Program parse_program(std::string_view text) {
  try {
    const auto json = Json::parse(text);
    Program program{.world_size = json.at("world_size").get<int>()};
    for (const auto& group : json.at("groups")) {
      program.groups.push_back({.name = group.at("name"), .ranks = group.at("ranks").get<std::vector<int>>()});
    }
    for (const auto& list : json.at("ranks")) {
      auto& calls = program.ranks.emplace_back();
      for (const auto& call : list) calls.push_back(call_from(call));
    }
    check(program);
    return program;
  } catch (const Json::exception& error) {
    refuse("a program of version 1", error.what());
  }
}

}  // namespace lockstep::sim::generated
