#include "lockstep/sim/report/waiting.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "lockstep/sim/report/wording.h"

namespace lockstep::sim::report {

namespace {

constexpr std::size_t kMaxDescribed = 4;  // links; the calls of a longer cycle stand in the table of ranks

}  // namespace

Waiting::Waiting(const Verdict& verdict) {
  for (const Edge& edge : verdict.edges) awaited_[edge.from].insert(edge.to);
  for (const RankStanding& standing : verdict.ranks) {
    const std::string call = standing.state == RankState::blocked ? call_text(standing) : "";
    texts_[standing.rank] = call.empty() ? std::string(to_word(standing.state)) : call;
    if (verdict.edges.empty() && !standing.waits_for.empty()) {
      awaited_[standing.rank].insert(standing.waits_for.begin(), standing.waits_for.end());
    }
  }
  if (verdict.first) cycle_ = shortest_cycle_through(*verdict.first);
  for (auto node = awaited_.begin(); cycle_.empty() && node != awaited_.end(); ++node) {
    cycle_ = shortest_cycle_through(node->first);
  }
}

// By breadth: the first way back that is found is a shortest one.
Waiting::Ranks Waiting::shortest_cycle_through(int rank) const {
  std::map<int, int> reached_from;
  std::deque<int> frontier = {rank};
  while (!frontier.empty()) {
    const int at = frontier.front();
    frontier.pop_front();
    for (const int next : awaited_by(at)) {
      if (next == rank) {
        Ranks cycle = {at};
        while (cycle.back() != rank) cycle.push_back(reached_from.at(cycle.back()));
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      if (reached_from.emplace(next, at).second) frontier.push_back(next);
    }
  }
  return {};
}

bool Waiting::is_on_cycle(const Edge& edge) const {
  for (std::size_t i = 0; i < cycle_.size(); ++i) {
    if (cycle_[i] == edge.from && cycle_[(i + 1) % cycle_.size()] == edge.to) return true;
  }
  return false;
}

std::vector<int> Waiting::awaited_by(int rank) const {
  const auto node = awaited_.find(rank);
  return node == awaited_.end() ? Ranks() : Ranks(node->second.begin(), node->second.end());
}

// "ranks 0-2 (barrier #4 of world)"
std::string Waiting::link(const Ranks& ranks) const {
  const auto text_of = [&](int rank) {
    const auto text = texts_.find(rank);
    return text == texts_.end() ? std::string() : text->second;
  };
  const std::string text = text_of(ranks.front());
  const bool is_common = std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return text_of(rank) == text; });
  return list_ranks(ranks) + (is_common && !text.empty() ? " (" + text + ")" : "");
}

// Ranks that wait, by whom they wait for.
std::map<Waiting::Ranks, Waiting::Ranks> Waiting::links_besides_cycle() const {
  std::map<Ranks, Ranks> waiting_for;
  for (const auto& [rank, awaited] : awaited_) {
    const bool is_on_cycle = std::find(cycle_.begin(), cycle_.end(), rank) != cycle_.end();
    if (!is_on_cycle) waiting_for[awaited_by(rank)].push_back(rank);
  }
  std::map<Ranks, Ranks> awaited_by_ranks;
  for (auto& [awaited, ranks] : waiting_for) awaited_by_ranks.emplace(std::move(ranks), awaited);
  return awaited_by_ranks;
}

std::vector<std::string> Waiting::chains() const {
  std::vector<std::string> chains;
  if (!cycle_.empty()) {
    const bool is_long = cycle_.size() > kMaxDescribed;
    std::string chain;
    for (const int rank : cycle_) chain += (is_long ? list_ranks({rank}) : link({rank})) + " -> ";
    chains.push_back(chain + list_ranks({cycle_.front()}));
  }
  const auto links = links_besides_cycle();
  std::set<Ranks> inner;  // what another link leads to is told in that one's chain
  for (const auto& [ranks, awaited] : links) inner.insert(awaited);
  for (const auto& [head, unused] : links) {
    if (inner.count(head) > 0) continue;
    std::string chain = link(head);
    auto at = links.find(head);
    for (; at != links.end(); at = links.find(at->second)) chain += " -> " + link(at->second);
    chains.push_back(chain);
  }
  return chains;
}

}  // namespace lockstep::sim::report
