#include "lockstep/sim/check/verdict_document.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "lockstep/sim/check/board_view.h"
#include "lockstep/sim/check/json_writer.h"

namespace lockstep::sim {
namespace {

using json::array;
using json::Fields;
using json::quoted;

// The cause is a sentence; messages of failures in it may have several lines.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
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

PlaceText place_text(const layout::Site& site, const layout::RankSeat& seat, const ResolvePlace& resolve) {
  if (site.place != 0) return parse_place(arena_text(seat, site.place));
  if (!resolve || site.num_frames == 0) return {};
  const std::string_view table(seat.module_table.data(), seat.module_table_size.load(std::memory_order_acquire));
  return resolve(table, {site.frames.data(), site.num_frames});
}

void add_place(Fields& to, std::string_view name, const layout::Site& site, const layout::RankSeat& seat,
               const ResolvePlace& resolve) {
  const auto place = place_text(site, seat, resolve);
  if (place.file.empty()) return;
  Fields fields;
  fields.text("file", place.file);
  fields.number("line", place.line);
  fields.text("function", place.function);
  to.raw(name, fields.done());
}

// "float32 [2, 3], float32 [3] and 12 more"
std::string tensors_of(const layout::CallRecord& call) {
  const auto tensors = describe_tensors({call.words.data(), call.num_words});
  std::string text;
  for (const auto& tensor : tensors) text += (text.empty() ? "" : ", ") + tensor;
  const auto num_cut = call.num_tensors - tensors.size();
  if (num_cut == 0) return text;
  return text.empty() ? std::to_string(num_cut) + " tensors" : text + " and " + std::to_string(num_cut) + " more";
}

std::string number_of_member(const layout::CallRecord& call, const Board& board) {
  return std::to_string(board.header().groups[call.group].ranks[static_cast<std::size_t>(call.peer)]);
}

void add_call(Fields& fields, const RankStanding& standing, const Board& board, const ResolvePlace& resolve) {
  const auto& call = *standing.call;
  const auto& seat = board.seat(standing.rank);
  fields.text("op", operation_of(call));
  fields.number("seq", static_cast<std::int64_t>(call.sequence));
  fields.text("group", group_name(board, call.group));
  if (call.num_tensors > 0) fields.text("tensors", tensors_of(call));
  if (call.reduce_op != kNoReduceOp) fields.text("reduce_op", reduce_op_word(call.reduce_op));
  if (call.peer >= 0) fields.raw("peer", number_of_member(call, board));
  if (is_point_to_point(static_cast<Operation>(call.operation))) fields.number("tag", call.tag);
  fields.number("step", call.step);
  fields.number("micro_step", call.micro_step);
  fields.text("phase", phase_word(call.phase));
  fields.raw("label", array(shown_labels(arena_text(seat, call.label)), quoted));
  add_place(fields, "place", call.site, seat, resolve);
}

// What the user's program says cannot fill the board: escaped, all of these are less than kVerdictBytes.
constexpr std::size_t kCauseBytes = 16384;
constexpr std::size_t kHintBytes = 4096;
constexpr std::size_t kNoteBytes = 1024;

// Without what stands beyond `most` bytes.
std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  text.resize(most);
  return text + "...";
}

std::string written(const VerdictDocument& document, const std::vector<std::string>& ranks,
                    const std::vector<std::pair<int, int>>& edges, const std::vector<std::string>& notes) {
  Fields fields;
  fields.number("v", 1);
  fields.text("verdict", document.verdict);
  fields.text("cause", one_line(shortened(document.cause, kCauseBytes)));
  fields.raw("ranks", array(ranks, [](const auto& rank) { return rank; }));
  if (document.first >= 0) fields.number("first", document.first);
  fields.raw("edges", array(edges, [](const auto& edge) {
               return "[" + std::to_string(edge.first) + ", " + std::to_string(edge.second) + "]";
             }));
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.3f", document.since_stall_s);
  fields.raw("since_stall_s", seconds.data());
  if (!document.hint.empty()) fields.text("hint", one_line(shortened(document.hint, kHintBytes)));
  fields.raw("notes", array(notes, [](const auto& note) { return quoted(one_line(shortened(note, kNoteBytes))); }));
  return fields.done();
}

// Leaves the rank where it began and those that failed as they are, and as many others as there is room for. Of the
// rest the state is left. @return how many those are
std::size_t cut(std::vector<std::string>& ranks, const VerdictDocument& document, std::size_t room) {
  std::size_t used = 2 * ranks.size();  // what stands between them
  std::vector<std::string> brief;
  for (const auto& standing : document.ranks) {
    Fields fields;
    fields.number("rank", standing.rank);
    fields.text("state", standing.state);
    used += brief.emplace_back(fields.done()).size();
  }
  std::vector<std::size_t> in_order(ranks.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  std::ranges::stable_sort(in_order, {}, [&document](std::size_t i) {
    const auto& standing = document.ranks[i];
    return standing.rank == document.first ? 0 : standing.failure ? 1 : 2;
  });
  std::size_t num_brief = 0;
  for (const auto i : in_order) {
    const auto more = ranks[i].size() - brief[i].size();
    if (used + more <= room) {
      used += more;
    } else {
      ranks[i] = brief[i];
      ++num_brief;
    }
  }
  return num_brief;
}

// A text of a document, wherever it was written. Empty if it is not there.
std::string text_of_field(std::string_view json, const std::string& name) {
  auto at = json.find("\"" + name + "\":");
  if (at == std::string_view::npos) return {};
  at = json.find('"', at + name.size() + 3);
  std::string text;
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    const bool is_escape = json[at] == '\\' && at + 1 < json.size();
    if (is_escape) ++at;
    text += is_escape && json[at] == 'n' ? '\n' : json[at];
  }
  return text;
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
  if (standing.wait) add_place(fields, standing.call ? "waits_at" : "place", standing.wait->site, seat, resolve);
  if (standing.failure) {
    fields.text("kind", text_of(standing.failure->kind));
    fields.text("message", text_of(standing.failure->message));
    add_place(fields, "failed_at", standing.failure->site, seat, resolve);
  }
  if (seat.signal != 0) fields.number("signal", seat.signal);
  fields.raw("waits_for", array(standing.waits_for, [](int rank) { return std::to_string(rank); }));
  return fields.done();
}

std::string to_json(const VerdictDocument& document, const Board& board, const ResolvePlace& resolve) {
  std::vector<std::string> ranks;
  for (const auto& standing : document.ranks) ranks.push_back(to_json(standing, board, resolve));
  auto notes = notes_of(board, resolve);
  const auto whole = written(document, ranks, document.edges, notes);
  if (whole.size() <= layout::kVerdictBytes) return whole;
  // A rank's waits_for says what the edges say.
  const auto note_about = [&ranks](std::size_t num_brief) -> std::string {
    constexpr auto kNoEdges = "this document would be too long: it leaves out the edges";
    if (num_brief == 0) return kNoEdges;
    return kNoEdges + (", and all but the state of " + std::to_string(num_brief)) + " of " +
           std::to_string(ranks.size()) + " ranks";
  };
  notes.push_back(note_about(ranks.size()));
  const auto room = layout::kVerdictBytes - written(document, {}, {}, notes).size();
  notes.back() = note_about(cut(ranks, document, room));
  return written(document, ranks, {}, notes);
}

std::string fitted_to_board(const std::string& json) {
  if (json.size() <= layout::kVerdictBytes) return json;
  VerdictDocument document{.verdict = text_of_field(json, "verdict"), .cause = cause_of(json)};
  return written(document, {}, {}, {"this document was too long: its verdict and its cause are left"});
}

std::string cause_of(std::string_view json) {
  const auto cause = text_of_field(json, "cause");
  return cause.empty() ? "a verdict was reached" : cause;
}

std::string_view operation_of(const layout::CallRecord& call) {
  const auto operation = static_cast<Operation>(call.operation);
  const bool is_monitored = operation == Operation::barrier && static_cast<Form>(call.form) != Form::plain;
  return is_monitored ? "monitored_barrier" : to_word(operation);
}

std::string call_name(const layout::CallRecord& call, const Board& board) {
  const auto operation = static_cast<Operation>(call.operation);
  auto text = std::string(operation_of(call)) + " #" + std::to_string(call.sequence);
  const auto partner = call.peer < 0 ? "any rank" : "rank " + number_of_member(call, board);
  if (operation == Operation::send) text += " to " + partner;
  if (operation == Operation::recv) text += " from " + partner;
  if (is_point_to_point(operation)) text += " with tag " + std::to_string(call.tag);
  return text.append(" of group ").append(group_name(board, call.group));
}

std::string describe(const layout::CallRecord& call, const Board& board, int rank) {
  const auto label = arena_text(board.seat(rank), call.label);
  std::string details;
  const auto add = [&details](const std::string& detail) { details += (details.empty() ? "" : ", ") + detail; };
  if (call.num_tensors > 0) add(tensors_of(call));
  if (call.reduce_op != kNoReduceOp) add(std::string(reduce_op_word(call.reduce_op)));
  const bool has_root = !is_point_to_point(static_cast<Operation>(call.operation)) && call.peer >= 0;
  if (has_root) add("root " + number_of_member(call, board));
  if (!label.empty()) add("of " + joined(lines_of(label)));
  const auto name = call_name(call, board);
  return details.empty() ? name : name + " (" + details + ")";
}

std::string place_of(const layout::Site& site, const layout::RankSeat& seat, const ResolvePlace& resolve) {
  const auto place = place_text(site, seat, resolve);
  if (place.file.empty()) return {};
  auto text = place.file;
  if (place.line > 0) text += ":" + std::to_string(place.line);
  if (!place.function.empty()) text += " (" + place.function + ")";
  return text;
}

std::string at_place(const layout::Site& site, const layout::RankSeat& seat, const ResolvePlace& resolve) {
  const auto place = place_of(site, seat, resolve);
  return place.empty() ? place : " at " + place;
}

std::string describe_sites(const layout::CallRecord& call, const Board& board, const std::vector<Callers>& callers) {
  auto text = "call sites differ: " + call_name(call, board) + " is called";
  for (std::size_t i = 0; i < callers.size(); ++i) {
    text += i == 0 ? " at " : i + 1 < callers.size() ? ", at " : " and at ";
    text += callers[i].place.empty() ? "an unknown place" : callers[i].place;
    text += " by " + list_ranks(callers[i].ranks);
  }
  return text;
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

}  // namespace lockstep::sim
