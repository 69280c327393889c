#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lockstep/sim/report/verdict.h"

namespace lockstep::sim::report {

/// Who waits for whom, for both reports.
class Waiting {
 public:
  /// Takes the document's edges; where there are none, what its ranks wait for.
  explicit Waiting(const Verdict& verdict);

  /// Ranks of a shortest cycle, each waiting for the next and the last for the first; empty if there is none. The cycle
  /// goes through the rank where it began, if that is possible.
  [[nodiscard]] const std::vector<int>& cycle() const noexcept { return cycle_; }
  [[nodiscard]] bool is_on_cycle(const Edge& edge) const;
  /// Whom a rank waits for, ascending.
  [[nodiscard]] std::vector<int> awaited_by(int rank) const;
  [[nodiscard]] bool empty() const noexcept { return awaited_.empty(); }

  /// One line per chain: "rank 0 (allreduce #4 of world) -> rank 1 (barrier #4 of world) -> rank 0", the cycle first;
  /// ranks that wait for the same ranks are one link.
  [[nodiscard]] std::vector<std::string> chains() const;

 private:
  using Ranks = std::vector<int>;
  [[nodiscard]] Ranks shortest_cycle_through(int rank) const;
  [[nodiscard]] std::string link(const Ranks& ranks) const;
  [[nodiscard]] std::map<Ranks, Ranks> links_besides_cycle() const;

  std::map<int, std::set<int>> awaited_;
  std::map<int, std::string> texts_;  // by rank: its call, or its state
  Ranks cycle_;
};

}  // namespace lockstep::sim::report
