#include "lockstep/sim/check/verdict_document.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lockstep::sim {
namespace {

// Length of the UTF-8 character that begins at `at`; 0 if none does.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = byte(at);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : 2;
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// Labels, keys and messages are the user's bytes; what is no UTF-8 must not make the document unreadable.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto length = utf8_length(text, at);
    if (c == '"' || c == '\\') {
      (result += '\\') += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned char>(c));
      result += escape.data();
    } else {
      result += length == 0 ? std::string_view("?") : text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return result += '"';
}

// The cause is a sentence; messages of failures in it may have several lines.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Writes an object field by field.
class Fields {
 public:
  void raw(std::string_view name, std::string_view json) {
    if (text_.size() > 1) text_ += ", ";
    text_ += quoted(name);
    text_ += ": ";
    text_ += json;
  }
  void text(std::string_view name, std::string_view value) { raw(name, quoted(value)); }
  void number(std::string_view name, std::int64_t value) { raw(name, std::to_string(value)); }
  std::string done() { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

template <typename Range, typename ToJson>
std::string array(const Range& range, ToJson&& to_json) {
  std::string text = "[";
  for (const auto& element : range) {
    if (text.size() > 1) text += ", ";
    text += to_json(element);
  }
  return text + "]";
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

template <std::size_t Size>
std::string_view text_of(const std::array<char, Size>& text) {
  return {text.data(), strnlen(text.data(), Size)};
}

// The first few names, and how many more there are.
std::string joined(const std::vector<std::string_view>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  return names.size() <= kShown ? text : text + " and " + std::to_string(names.size() - kShown) + " more";
}

// A bucket may hold hundreds of parameters, and the document has to stay readable, and to fit onto the board.
std::vector<std::string> shown_labels(std::string_view label) {
  constexpr std::size_t kShown = 16;
  const auto names = lines_of(label);
  std::vector<std::string> shown(names.begin(),
                                 names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)));
  if (names.size() > kShown) shown.push_back("and " + std::to_string(names.size() - kShown) + " more");
  return shown;
}

// "file:line:function", as the Python adapter writes places.
PlaceText parse_place(std::string_view text) {
  PlaceText place;
  const auto function = text.rfind(':');
  if (function == std::string_view::npos) return {.file = std::string(text)};
  const auto line = text.rfind(':', function - 1);
  if (line == std::string_view::npos) return {.file = std::string(text)};
  place.file = text.substr(0, line);
  place.line = std::atoi(std::string(text.substr(line + 1, function - line - 1)).c_str());
  place.function = text.substr(function + 1);
  return place;
}

template <typename HasFrames>
PlaceText resolved(const HasFrames& call, const layout::RankSeat& seat, const ResolvePlace& resolve) {
  if (!resolve || call.num_frames == 0) return {};
  const std::string_view table(seat.module_table.data(), seat.module_table_size.load(std::memory_order_acquire));
  return resolve(table, {call.frames.data(), call.num_frames});
}

PlaceText place_text(const layout::CallRecord& call, const layout::RankSeat& seat, const ResolvePlace& resolve) {
  if (call.place != 0) return parse_place(arena_text(seat, call.place));
  return resolved(call, seat, resolve);
}

std::string to_text(const PlaceText& place) {
  if (place.file.empty()) return {};
  auto text = place.file;
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (!place.function.empty()) text += " (" + place.function + ")";
  return text;
}

std::string to_json(const PlaceText& place) {
  Fields fields;
  fields.text("file", place.file);
  fields.number("line", place.line);
  fields.text("function", place.function);
  return fields.done();
}

void add_call(Fields& fields, const RankStanding& standing, const Board& board, const ResolvePlace& resolve) {
  const auto& call = *standing.call;
  const auto& seat = board.seat(standing.rank);
  const auto operation = static_cast<Operation>(call.operation);
  fields.text("op", sim::to_word(operation));
  fields.number("seq", static_cast<std::int64_t>(call.sequence));
  fields.text("group", group_name(board, call.group));
  if (call.num_words > 0) fields.text("tensors", describe_shapes({call.words.data(), call.num_words}));
  if (call.reduce_op != kNoReduceOp) fields.text("reduce_op", reduce_op_word(call.reduce_op));
  if (call.peer >= 0) {
    fields.number("peer", board.header().groups[call.group].ranks[static_cast<std::size_t>(call.peer)]);
  }
  if (is_point_to_point(operation)) fields.number("tag", call.tag);
  fields.number("step", call.step);
  fields.number("micro_step", call.micro_step);
  fields.text("phase", phase_word(call.phase));
  fields.raw("label", array(shown_labels(arena_text(seat, call.label)), quoted));
  if (const auto place = place_text(call, seat, resolve); !place.file.empty()) fields.raw("place", to_json(place));
}

}  // namespace

std::string to_json(const RankStanding& standing, const Board& board, const ResolvePlace& resolve) {
  const auto& seat = board.seat(standing.rank);
  Fields fields;
  fields.number("rank", standing.rank);
  fields.text("state", standing.state);
  if (standing.call) {
    add_call(fields, standing, board, resolve);
  } else if (standing.wait && standing.wait->kind == layout::WaitKind::store) {
    fields.text("op", "store wait");
    fields.text("key", arena_text(seat, standing.wait->key));
  } else if (standing.wait && standing.wait->kind == layout::WaitKind::rendezvous) {
    fields.text("op", "rendezvous");
    fields.text("group", group_name(board, standing.wait->group));
  }
  if (standing.wait) {
    if (const auto place = resolved(*standing.wait, seat, resolve); !place.file.empty()) {
      fields.raw(standing.call ? "waits_at" : "place", to_json(place));
    }
  }
  if (standing.failure) {
    fields.text("kind", text_of(standing.failure->kind));
    fields.text("message", text_of(standing.failure->message));
    if (const auto place = resolved(*standing.failure, seat, resolve); !place.file.empty()) {
      fields.raw("failed_at", to_json(place));
    }
  }
  fields.raw("waits_for", array(standing.waits_for, [](int rank) { return std::to_string(rank); }));
  return fields.done();
}

std::string to_json(const VerdictDocument& document, const Board& board, const ResolvePlace& resolve) {
  Fields fields;
  fields.number("v", 1);
  fields.text("verdict", document.verdict);
  fields.text("cause", one_line(document.cause));
  fields.raw("ranks", array(document.ranks, [&](const auto& rank) { return to_json(rank, board, resolve); }));
  if (document.first >= 0) fields.number("first", document.first);
  fields.raw("edges", array(document.edges, [](const auto& edge) {
               return "[" + std::to_string(edge.first) + ", " + std::to_string(edge.second) + "]";
             }));
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.3f", document.since_stall_s);
  fields.raw("since_stall_s", seconds.data());
  if (!document.hint.empty()) fields.text("hint", document.hint);
  fields.raw("notes", array(document.notes, quoted));
  return fields.done();
}

std::string cause_of(std::string_view json) {
  constexpr std::string_view kCause = "\"cause\": \"";
  const auto begin = json.find(kCause);
  if (begin == std::string_view::npos) return "a verdict was reached";
  std::string cause;
  for (auto at = begin + kCause.size(); at < json.size() && json[at] != '"'; ++at) {
    if (json[at] == '\\' && at + 1 < json.size()) {
      ++at;
      cause += json[at] == 'n' ? '\n' : json[at];
    } else {
      cause += json[at];
    }
  }
  return cause;
}

std::string describe(const layout::CallRecord& call, const Board& board, int rank) {
  const auto label = arena_text(board.seat(rank), call.label);
  const auto operation = static_cast<Operation>(call.operation);
  const auto member = [&](int peer) {
    return std::to_string(board.header().groups[call.group].ranks[static_cast<std::size_t>(peer)]);
  };
  std::string text(to_word(operation));
  text += " #" + std::to_string(call.sequence);
  if (operation == Operation::send) text += " to rank " + member(call.peer);
  if (operation == Operation::recv) text += " from " + (call.peer < 0 ? "any rank" : "rank " + member(call.peer));
  if (is_point_to_point(operation)) text += " with tag " + std::to_string(call.tag);
  text += " of group ";
  text += group_name(board, call.group);
  std::string details;
  const auto add = [&details](const std::string& detail) { details += (details.empty() ? "" : ", ") + detail; };
  if (call.num_words > 0) add(describe_shapes({call.words.data(), call.num_words}));
  if (call.reduce_op != kNoReduceOp) add(std::string(reduce_op_word(call.reduce_op)));
  if (!is_point_to_point(operation) && call.peer >= 0) add("root " + member(call.peer));
  if (call.label_hash != 0) add("of " + joined(lines_of(label)));
  return details.empty() ? text : text + " (" + details + ")";
}

std::string place_of(const layout::CallRecord& call, const layout::RankSeat& seat, const ResolvePlace& resolve) {
  return to_text(place_text(call, seat, resolve));
}

std::string place_of(const layout::Wait& wait, const layout::RankSeat& seat, const ResolvePlace& resolve) {
  return to_text(resolved(wait, seat, resolve));
}

std::string_view group_name(const Board& board, std::uint32_t group) {
  return text_of(board.header().groups[group % layout::kMaxGroups].name);
}

std::string list_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t begin = 0; begin < ranks.size();) {
    auto end = begin;
    while (end + 1 < ranks.size() && ranks[end + 1] == ranks[end] + 1) ++end;
    if (begin > 0) text += ", ";
    text += std::to_string(ranks[begin]);
    if (end > begin) text += (end == begin + 1 ? ", " : "-") + std::to_string(ranks[end]);
    begin = end + 1;
  }
  return text;
}

std::optional<layout::CallRecord> record_of(const layout::RankSeat& seat, std::uint64_t number) {
  if (number == 0) return std::nullopt;
  auto record = seat.records[number % layout::kRing].load();
  return record && record->number == number ? record : std::nullopt;
}

}  // namespace lockstep::sim
