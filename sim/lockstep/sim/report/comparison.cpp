#include "lockstep/sim/report/comparison.h"

#include <algorithm>

#include "lockstep/sim/report/wording.h"

namespace lockstep::sim::report {

namespace {

bool is_point_to_point(const RankStanding& standing) { return standing.op == "send" || standing.op == "recv"; }

// The two ends of a channel count their calls apart from the collectives, and name each other as their peer.
bool meet(const RankStanding& a, const RankStanding& b) {
  if (a.group != b.group) return false;
  if (is_point_to_point(a) && is_point_to_point(b)) return a.peer == b.rank && b.peer == a.rank;
  return a.seq == b.seq;
}

// The rank that most others meet: the mismatch is in its call.
const RankStanding* reference(const Verdict& verdict) {
  const RankStanding* best = nullptr;
  std::ptrdiff_t num_best = 0;
  for (const RankStanding& standing : verdict.ranks) {
    if (standing.op.empty()) continue;
    const auto num_met = std::count_if(verdict.ranks.begin(), verdict.ranks.end(), [&](const RankStanding& other) {
      return other.rank != standing.rank && !other.op.empty() && meet(standing, other);
    });
    if (best == nullptr || num_met > num_best) {
      best = &standing;
      num_best = num_met;
    }
  }
  return best;
}

std::string operation_text(const RankStanding& standing) {
  return standing.op + (standing.seq ? " #" + std::to_string(*standing.seq) : "") +
         (standing.group.empty() ? "" : " of " + standing.group);
}

std::string peer_text(const RankStanding& standing) {
  if (!standing.peer) return "";
  const std::string peer = std::to_string(*standing.peer);
  if (standing.op == "send") return "to rank " + peer;
  return standing.op == "recv" ? "from rank " + peer : "root " + peer;
}

std::vector<std::string> cells_of(const RankStanding& standing) {
  return {one_line(operation_text(standing)),
          tensors_text(standing),
          one_line(standing.reduce_op),
          peer_text(standing),
          standing.tag ? "tag " + std::to_string(*standing.tag) : "",
          label_text(standing)};
}

void add_to(std::vector<Comparison::Row>& rows, const RankStanding& standing) {
  Comparison::Row row = {.ranks = {standing.rank}, .cells = cells_of(standing), .place = place_text(standing)};
  const auto alike = std::find_if(rows.begin(), rows.end(), [&](const Comparison::Row& other) {
    return other.cells == row.cells && other.place == row.place;
  });
  if (alike == rows.end()) {
    rows.push_back(std::move(row));
  } else {
    alike->ranks.push_back(standing.rank);
  }
}

// A column that is empty for all says nothing.
void drop_empty_fields(Comparison& comparison) {
  for (std::size_t i = comparison.fields.size(); i-- > 0;) {
    auto& rows = comparison.rows;
    if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return !row.cells[i].empty(); })) continue;
    comparison.fields.erase(comparison.fields.begin() + static_cast<std::ptrdiff_t>(i));
    for (auto& row : rows) row.cells.erase(row.cells.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

Comparison compare_calls(const Verdict& verdict) {
  Comparison comparison;
  const RankStanding* call = reference(verdict);
  if (call == nullptr) return comparison;
  for (const RankStanding& standing : verdict.ranks) {
    if (!standing.op.empty() && (standing.rank == call->rank || meet(*call, standing)))
      add_to(comparison.rows, standing);
  }
  for (const char* name : {"operation", "tensors", "reduction", "peer", "tag", "names"}) {
    comparison.fields.push_back({.name = name});
  }
  drop_empty_fields(comparison);
  for (std::size_t i = 0; i < comparison.fields.size(); ++i) {
    auto& field = comparison.fields[i];
    if (is_point_to_point(*call) && field.name != "tensors") continue;  // the two ends differ in the rest by nature
    const auto& first = comparison.rows.front().cells[i];
    field.differs = std::any_of(comparison.rows.begin(), comparison.rows.end(),
                                [&](const auto& row) { return row.cells[i] != first; });
  }
  return comparison;
}

std::string Comparison::sentence() const {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    if (field.differs) names.push_back(field.name);
  }
  if (names.empty()) return "";
  std::string text = "They differ in " + names.front();
  for (std::size_t i = 1; i < names.size(); ++i) text += (i + 1 < names.size() ? ", " : " and ") + names[i];
  return text + ".";
}

}  // namespace lockstep::sim::report
