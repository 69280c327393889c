#include "lockstep/sim/check/wait_graph.h"

#include <algorithm>
#include <set>

namespace lockstep::sim {
namespace {

bool is_met(const Need& need, const std::vector<bool>& moves) {
  const auto can_move = [&moves](int rank) { return static_cast<bool>(moves[static_cast<std::size_t>(rank)]); };
  if (need.ranks.empty()) return !need.any;
  return need.any ? std::ranges::any_of(need.ranks, can_move) : std::ranges::all_of(need.ranks, can_move);
}

}  // namespace

std::vector<int> stuck_ranks(const std::vector<RankNode>& nodes) {
  std::vector<bool> moves(nodes.size());
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    moves[rank] = !nodes[rank].is_gone && nodes[rank].needs.empty();
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      if (moves[rank] || nodes[rank].is_gone) continue;
      if (std::ranges::any_of(nodes[rank].needs, [&moves](const Need& need) { return is_met(need, moves); })) {
        moves[rank] = true;
        has_grown = true;
      }
    }
  }
  std::vector<int> stuck;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    if (!moves[rank] && !nodes[rank].is_gone) stuck.push_back(static_cast<int>(rank));
  }
  return stuck;
}

int first_of(const std::vector<RankNode>& nodes, const std::vector<int>& stuck) {
  std::set<int> gone;
  std::vector<int> num_waiting_for(nodes.size());
  for (const int rank : stuck) {
    std::set<int> targets;
    for (const auto& need : nodes[static_cast<std::size_t>(rank)].needs)
      targets.insert(need.ranks.begin(), need.ranks.end());
    targets.erase(rank);
    for (const int target : targets) {
      ++num_waiting_for[static_cast<std::size_t>(target)];
      if (nodes[static_cast<std::size_t>(target)].is_gone) gone.insert(target);
    }
  }
  if (gone.size() == 1) return *gone.begin();
  if (gone.size() > 1 && stuck.size() == 1) return stuck.front();  // it alone went on
  if (!gone.empty() || stuck.size() < 3) return -1;
  int first = -1;
  for (const int rank : stuck) {
    if (num_waiting_for[static_cast<std::size_t>(rank)] != static_cast<int>(stuck.size()) - 1) continue;
    if (first >= 0) return -1;  // two of them: nothing tells which
    first = rank;
  }
  return first;
}

}  // namespace lockstep::sim
