#include "lockstep/sim/gallery/generated/outcome.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "lockstep/sim/check/wait_graph.h"
#include "lockstep/sim/gallery/generated/clash.h"
#include "lockstep/sim/gallery/generated/execution.h"
#include "lockstep/sim/gallery/generated/matching.h"

namespace lockstep::sim::generated {
namespace {

/// All that may become of one program.
class Analysis {
 public:
  explicit Analysis(const Program& program)
      : program_(program), run_(program), clashes_(clashes_of(program, run_)), num_ranks_(program.world_size) {
    for (int rank = 0; rank < num_ranks_; ++rank) standings_.push_back(run_.standing(rank));
  }

  std::set<Outcome> outcomes() {
    add_mismatches();
    add_deadlocks();
    if (outcomes_.empty()) add_undisturbed_end();
    return std::move(outcomes_);
  }

 private:
  // A clash is what the run ends with if no other one must come before it.
  void add_mismatches() {
    std::set<Meeting> meetings;
    for (const auto& clash : clashes_) {
      const auto earliest = clash.earliest();
      const bool comes_too_late = std::ranges::any_of(
          clashes_, [&](const Clash& other) { return other.meeting != clash.meeting && other.has_happened(earliest); });
      if (!comes_too_late) meetings.insert(clash.meeting);
    }
    for (const auto& meeting : meetings) {
      if (meeting.group) {
        add_mismatch(*meeting.group, meeting.number);
      } else {
        outcomes_.insert({.verdict = Verdict::mismatch});  // of two ends, none is the odd one
      }
    }
  }

  // Whoever finds the mismatch waits a moment for the other members to show what they call. Those come who need none
  // to get past this call; and perhaps those who need one that has made it first and gone on.
  void add_mismatch(int group, std::size_t number) {
    const Execution halted(program_, Execution::Halt{.group = group, .sequence = number});
    std::vector<const Posted*> certain;
    std::vector<const Posted*> possible;
    for (std::size_t member = 0; member < run_.posted(group).size(); ++member) {
      if (run_.posted(group)[member].size() <= number) continue;
      const bool comes = halted.posted(group)[member].size() > number;
      (comes ? certain : possible).push_back(&run_.posted(group)[member][number]);
    }
    for (unsigned choice = 0; choice < 1U << possible.size(); ++choice) {
      auto calls = certain;
      for (std::size_t i = 0; i < possible.size(); ++i) {
        if ((choice >> i & 1U) != 0) calls.push_back(possible[i]);
      }
      std::ranges::sort(calls, {}, &Posted::rank);
      add_mismatch_of(calls);
    }
  }

  void add_mismatch_of(const std::vector<const Posted*>& calls) {
    std::vector<std::vector<const Posted*>> classes;
    bool is_mismatch = false;
    for (const auto* posted : calls) {
      is_mismatch = is_mismatch || std::ranges::any_of(calls, [posted](const Posted* other) {
                      return !match(*posted->call, *other->call);
                    });
      const auto alike = std::ranges::find_if(
          classes, [posted](const auto& members) { return look_alike(*members.front()->call, *posted->call); });
      alike == classes.end() ? classes.push_back({posted}) : alike->push_back(posted);
    }
    if (!is_mismatch) return;
    Outcome outcome{.verdict = Verdict::mismatch};
    if (classes.size() == 2) {
      std::ranges::sort(classes, {}, [](const auto& members) { return members.size(); });
      if (classes[0].size() == 1 && classes[1].size() > 1) {
        outcome.rank = classes[0].front()->rank;
        outcome.line = classes[0].front()->call->line;
      }
    }
    outcomes_.insert(outcome);
  }

  // Ranks come to their last call at different times, and those that are there may already be stuck for good. So each
  // set of ranks is looked at, as if the others were still on their way.
  void add_deadlocks() {
    for (unsigned choice = 1; choice < 1U << num_ranks_; ++choice) {
      Clock clock(static_cast<std::size_t>(num_ranks_));
      for (int rank = 0; rank < num_ranks_; ++rank) {
        if ((choice >> rank & 1U) != 0) join(clock, standing(rank).clock);
      }
      if (std::ranges::any_of(clashes_, [&](const Clash& clash) { return clash.has_happened(clock); })) continue;
      add_deadlock(choice, clock);
    }
  }

  void add_deadlock(unsigned arrived, const Clock& clock) {
    std::vector<RankNode> nodes(static_cast<std::size_t>(num_ranks_));
    for (int rank = 0; rank < num_ranks_; ++rank) {
      if ((arrived >> rank & 1U) == 0) continue;
      auto& node = nodes[static_cast<std::size_t>(rank)];
      node.is_gone = standing(rank).end != Standing::End::blocked;
      if (!node.is_gone) node.needs.push_back(need_of(rank, clock));
    }
    const auto stuck = stuck_ranks(nodes);
    if (stuck.empty()) return;
    Outcome outcome{.verdict = waits_for_failed(nodes, stuck) ? Verdict::rank_failed : Verdict::deadlock};
    if (const int first = first_of(nodes, stuck); first >= 0) {
      outcome.rank = first;
      const auto& began = standing(first);
      const auto* call = began.awaited ? began.awaited->call : began.last;
      if (call != nullptr) outcome.line = call->line;
    }
    outcomes_.insert(outcome);
  }

  [[nodiscard]] bool waits_for_failed(const std::vector<RankNode>& nodes, const std::vector<int>& stuck) const {
    return std::ranges::any_of(stuck, [&](int rank) {
      const auto& awaited = nodes[static_cast<std::size_t>(rank)].needs.front().ranks;
      return std::ranges::any_of(awaited, [&](int other) {
        return nodes[static_cast<std::size_t>(other)].is_gone && standing(other).end == Standing::End::failed;
      });
    });
  }

  // Whom a blocked rank waits for, at this moment.
  [[nodiscard]] Need need_of(int rank, const Clock& clock) const {
    const auto& awaited = *standing(rank).awaited;
    const auto& call = *awaited.call;
    const auto lacks = [&](const std::vector<Posted>& posted) {
      return posted.size() <= awaited.sequence ||
             !has_happened(clock, posted[awaited.sequence].rank, posted[awaited.sequence].event());
    };
    Need need;
    if (call.action == Action::store_wait) {
      need.any = true;
      for (int other = 0; other < num_ranks_; ++other) {
        if (other != rank) need.ranks.push_back(other);
      }
    } else if (is_point_to_point(call.action)) {
      const auto& channel = run_.channels().at(channel_of(rank, call));
      if (lacks(call.action == Action::send ? channel.receives : channel.sends)) need.ranks.push_back(call.peer);
    } else {
      const auto& members = program_.groups[static_cast<std::size_t>(call.group)].ranks;
      for (std::size_t member = 0; member < members.size(); ++member) {
        if (members[member] != rank && lacks(run_.posted(call.group)[member])) need.ranks.push_back(members[member]);
      }
    }
    return need;
  }

  // Nobody is left waiting. A rank that failed is told of all the same, by whoever started it.
  void add_undisturbed_end() {
    for (int rank = 0; rank < num_ranks_; ++rank) {
      const auto& end = standing(rank);
      if (end.end == Standing::End::blocked)
        throw std::logic_error("a rank waits, and the checker's rules do not tell");
      if (end.end != Standing::End::failed) continue;
      outcomes_.insert({.verdict = Verdict::rank_failed,
                        .rank = rank,
                        .line = end.last == nullptr ? std::nullopt : std::optional(end.last->line)});
    }
    if (outcomes_.empty()) outcomes_.insert({.verdict = Verdict::completes});
  }

  [[nodiscard]] const Standing& standing(int rank) const { return standings_[static_cast<std::size_t>(rank)]; }

  const Program& program_;
  Execution run_;
  std::vector<Clash> clashes_;
  std::vector<Standing> standings_;
  int num_ranks_;
  std::set<Outcome> outcomes_;
};

}  // namespace

std::string_view to_word(Verdict verdict) {
  static constexpr std::array<std::string_view, 4> kWords = {"completes", "mismatch", "deadlock", "rank_failed"};
  return kWords.at(static_cast<std::size_t>(verdict));
}

std::string to_text(const Outcome& outcome) {
  std::string text(to_word(outcome.verdict));
  if (outcome.rank) text += ", began at rank " + std::to_string(*outcome.rank);
  if (outcome.line) text += ", line " + std::to_string(*outcome.line);
  return text;
}

std::set<Outcome> expected_outcomes(const Program& program) { return Analysis(program).outcomes(); }

}  // namespace lockstep::sim::generated
