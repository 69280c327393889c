#include "lockstep/sim/check/judge.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "lockstep/sim/check/channels.h"
#include "lockstep/sim/check/process.h"

namespace lockstep::sim {
namespace {

using layout::Life;
using layout::Wait;
using layout::WaitKind;

// Looks that must agree before stuck ranks are a verdict, and looks for which a rank with waiting threads must have
// been still. At 50 ms a look this is the 0.1 s that a proof costs.
constexpr int kEqualLooks = 2;
// While others still run, a few more: those that come to the same standstill make the picture whole, and it tells
// better where it began.
constexpr int kEqualLooksOfSome = 6;
constexpr std::uint32_t kStillLooks = 2;

constexpr auto kHintOfFailure = "The failure of that rank is where it began; the others only wait for it.";

std::vector<int> members_of(const Board& board, std::uint32_t group) {
  const auto& entry = board.header().groups[group % layout::kMaxGroups];
  return {entry.ranks.begin(), entry.ranks.begin() + entry.size};
}

int group_rank_of(const std::vector<int>& members, int rank) {
  return static_cast<int>(std::ranges::find(members, rank) - members.begin());
}

// What a waiting thread of `rank` needs of the others.
Need need_of(const Board& board, int rank, const Wait& wait) {
  const auto members = members_of(board, wait.group);
  const auto others = [&](const auto& is_needed) {
    std::vector<int> ranks;
    for (const int member : members) {
      if (member != rank && is_needed(board.seat(member))) ranks.push_back(member);
    }
    return ranks;
  };
  const auto me = group_rank_of(members, rank);
  const auto partner_lacks = [&](bool sends) {
    auto& partner = board.seat(members[static_cast<std::size_t>(wait.peer)]);
    return num_posted(partner, {.group = static_cast<int>(wait.group), .peer = me, .tag = wait.tag, .sends = sends}) <
           wait.sequence;
  };
  switch (wait.kind) {
    case WaitKind::collective:
      return {.ranks =
                  others([&](const layout::RankSeat& seat) { return seat.groups[wait.group].posted < wait.sequence; })};
    case WaitKind::rendezvous:
      return {.ranks = others([&](const layout::RankSeat& seat) {
                return seat.groups[wait.group].membership == layout::Membership::none;
              })};
    case WaitKind::send:
      return {.ranks = partner_lacks(false) ? std::vector{members[static_cast<std::size_t>(wait.peer)]}
                                            : std::vector<int>{}};
    case WaitKind::receive:
      return {.ranks =
                  partner_lacks(true) ? std::vector{members[static_cast<std::size_t>(wait.peer)]} : std::vector<int>{}};
    case WaitKind::receive_any: {
      // Some member's send under the tag that no receive has taken yet is enough.
      std::uint64_t sends = 0;
      std::uint64_t receives = num_posted(board.seat(rank), {.group = static_cast<int>(wait.group), .tag = wait.tag});
      for (std::size_t member = 0; member < members.size(); ++member) {
        const auto group = static_cast<int>(wait.group);
        sends += num_posted(board.seat(members[member]), {.group = group, .peer = me, .tag = wait.tag, .sends = true});
        receives += num_posted(board.seat(rank), {.group = group, .peer = static_cast<int>(member), .tag = wait.tag});
      }
      if (sends >= receives) return {};
      return {.ranks = others([](const layout::RankSeat&) { return true; }), .any = true};
    }
    case WaitKind::store: {
      std::vector<int> all;
      for (int other = 0; other < board.world_size(); ++other) {
        if (other != rank) all.push_back(other);
      }
      return {.ranks = all, .any = true};
    }
    case WaitKind::none: break;
  }
  return {};
}

std::uint64_t versions_of(const layout::RankSeat& seat) {
  auto hash = mix(0, seat.num_calls.load());
  for (const auto& thread : seat.threads) hash = mix(mix(hash, thread.wait.version()), thread.future_wait.version());
  return hash;
}

}  // namespace

struct Judge::View {
  std::vector<RankNode> nodes;
  std::vector<std::vector<Wait>> waits;
  std::vector<std::uint64_t> versions;
  std::vector<std::uint32_t> still_looks;
};

Judge::View Judge::view() const {
  View view;
  for (int rank = 0; rank < board_->world_size(); ++rank) {
    const auto& seat = board_->seat(rank);
    view.versions.push_back(versions_of(seat));
    view.still_looks.push_back(seat.still_looks);
    RankNode node{.is_gone = is_gone(seat)};
    std::vector<Wait> waits;
    const bool may_wait = !node.is_gone && seat.still_looks >= kStillLooks && seat.is_paused == 0;
    if (may_wait) waits = waits_of(seat);
    for (const auto& wait : waits) node.needs.push_back(need_of(*board_, rank, wait));
    view.nodes.push_back(std::move(node));
    view.waits.push_back(std::move(waits));
  }
  return view;
}

std::optional<std::string> Judge::look() {
  const auto view = this->view();
  const auto stuck = stuck_ranks(view.nodes);
  std::uint64_t found = 0;
  for (const int rank : stuck) {
    found = mix(mix(found, static_cast<std::uint64_t>(rank)), view.versions[static_cast<std::size_t>(rank)]);
  }
  // A look counts only if each stuck rank's own monitor has looked again as well: one that gets no time to run says
  // nothing new.
  const bool is_news = std::ranges::all_of(stuck, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    return still_before_.empty() || view.still_looks[index] > still_before_[index];
  });
  if (found == 0 || found != suspicion_) {
    num_equal_looks_ = 0;
  } else if (is_news) {
    ++num_equal_looks_;
  }
  suspicion_ = found;
  if (is_news || num_equal_looks_ == 0) still_before_ = view.still_looks;
  const bool any_runs =
      std::ranges::any_of(view.nodes, [](const RankNode& node) { return !node.is_gone && node.needs.empty(); });
  if (found != 0 && num_equal_looks_ >= (any_runs ? kEqualLooksOfSome : kEqualLooks))
    return to_json(deadlock(view, stuck), *board_, resolve_);
  if (stuck.empty() && options_.stall_s > 0) {
    if (const auto late = straggler(view)) return to_json(*late, *board_, resolve_);
  }
  return std::nullopt;
}

namespace {

std::vector<int> targets_of(const RankNode& node) {
  std::set<int> targets;
  for (const auto& need : node.needs) targets.insert(need.ranks.begin(), need.ranks.end());
  return {targets.begin(), targets.end()};
}

// "allreduce #4 of group world (...) at train.cpp:41 (step)"
std::string waited_for(const RankStanding& standing, const Board& board, const ResolvePlace& resolve) {
  const auto& seat = board.seat(standing.rank);
  if (standing.call) {
    return describe(*standing.call, board, standing.rank) + at_place(standing.call->site, seat, resolve);
  }
  if (!standing.wait) return "its start";
  const auto at = at_place(standing.wait->site, seat, resolve);
  if (standing.wait->kind == WaitKind::store) {
    return "a wait for the key '" + std::string(arena_text(seat, standing.wait->key)) + "' of the store" + at;
  }
  return "the making of group " + std::string(group_name(board, standing.wait->group)) + at;
}

// ", which has left", ", whose process was ended by signal 9 (Killed)"
std::string manner_of_end(const layout::RankSeat& seat) {
  if (seat.life == Life::left) return ", which has left";
  const int signal = seat.signal;
  if (signal == 0) return ", whose process is gone without a word";
  const char* name = sigdescr_np(signal);
  return ", whose process was ended by signal " + std::to_string(signal) +
         (name == nullptr ? "" : " (" + std::string(name) + ")");
}

// What a rank that is gone did last, for the sentence about those who wait for it.
std::string end_of(const Board& board, int rank, const ResolvePlace& resolve) {
  const auto& seat = board.seat(rank);
  std::string text = "rank " + std::to_string(rank);
  if (const auto failure = seat.failure.load(); failure && seat.life == Life::failed) {
    text += std::string(", which failed (") + failure->kind.data() + ": " + failure->message.data() + ")" +
            at_place(failure->site, seat, resolve);
  } else {
    text += manner_of_end(seat);
  }
  const auto last = record_of(seat, seat.num_calls);
  if (!last) return text + " before its first call";
  return text + " after " + describe(*last, board, rank) + at_place(last->site, seat, resolve);
}

}  // namespace

RankStanding standing_of(const Board& board, int rank) {
  const auto& seat = board.seat(rank);
  RankStanding standing{.rank = rank, .state = "running"};
  const auto waits = waits_of(seat);
  if (seat.life == Life::failed) {
    standing.state = "failed";
    standing.failure = seat.failure.load();
  } else if (is_gone(seat)) {
    standing.state = "ended";
  } else if (seat.is_paused != 0) {
    standing.state = "paused";
  } else if (!waits.empty()) {
    standing.state = "blocked";
    standing.wait = waits.front();
    standing.waits_for = targets_of({.needs = {need_of(board, rank, waits.front())}});
  }
  const auto number = standing.wait ? standing.wait->number : seat.num_calls.load();
  standing.call = record_of(seat, number);
  return standing;
}

namespace {

// Those for whom a rank waited in vain that failed in a monitored barrier: such a barrier fails on those who came.
std::vector<int> missing_in_barrier(const Board& board, int rank) {
  const auto& seat = board.seat(rank);
  const auto last = record_of(seat, seat.num_calls);
  if (!last || operation_of(*last) != "monitored_barrier") return {};
  return need_of(board, rank, {.kind = WaitKind::collective, .group = last->group, .sequence = last->sequence}).ranks;
}

}  // namespace

VerdictDocument failure_of(const Board& board, int rank, const ResolvePlace& resolve) {
  VerdictDocument document{.verdict = "rank_failed", .first = rank, .hint = kHintOfFailure};
  for (int other = 0; other < board.world_size(); ++other) {
    if (board.seat(other).life != Life::absent) document.ranks.push_back(standing_of(board, other));
  }
  document.cause = end_of(board, rank, resolve);
  document.cause.replace(document.cause.find(", which failed"), 7, "");  // "rank 1 failed (...)"
  if (const auto missing = missing_in_barrier(board, rank); !missing.empty()) {
    document.first = missing.size() == 1 ? missing.front() : -1;
    document.cause += ", to which " + list_ranks(missing) + (missing.size() == 1 ? " has" : " have") + " not come";
    document.hint = "Who does not come to a monitored barrier in time is late, or went another way.";
  }
  return document;
}

// As far as the waits tell it for certain.
std::string Judge::hint_for(const View& view, const std::vector<int>& stuck) const {
  const auto find = [&](auto&& fits) -> const Wait* {
    for (const int rank : stuck) {
      const auto index = static_cast<std::size_t>(rank);
      for (std::size_t i = 0; i < view.waits[index].size(); ++i) {
        if (fits(view.waits[index][i], view.nodes[index].needs[i])) return &view.waits[index][i];
      }
    }
    return nullptr;
  };
  const auto find_kind = [&find](WaitKind kind) {
    return find([kind](const Wait& wait, const Need&) { return wait.kind == kind; });
  };
  const auto waits_for_one_that_left = [&](const Wait& wait, const Need& need) {
    const auto is_gone = [&](int rank) { return view.nodes[static_cast<std::size_t>(rank)].is_gone; };
    if (wait.kind == WaitKind::store) return false;
    return need.any ? std::ranges::all_of(need.ranks, is_gone) : std::ranges::any_of(need.ranks, is_gone);
  };
  if (find(waits_for_one_that_left)) {
    return "Who has left made fewer calls than the others: look for a loop that ended earlier, or an early return. Its "
           "count has to be the same on all ranks.";
  }
  if (find_kind(WaitKind::store)) {
    return "No rank that could set the key gets so far. Look for another spelling of it, for a branch around the call "
           "that sets it, and for a set that comes only after this wait.";
  }
  if (find_kind(WaitKind::rendezvous)) {
    return "All ranks must call new_group for the same groups, in one order. Look for one that a branch leaves out.";
  }
  if (find_kind(WaitKind::receive) || find_kind(WaitKind::receive_any)) {
    return "The send that this receive waits for was not made. Compare partner, tag and group on both sides, and the "
           "order of their calls: if both receive first, nobody sends.";
  }
  if (find_kind(WaitKind::send)) {
    return "The receive that this send waits for was not made. Compare partner, tag and group on both sides, and the "
           "order of their calls: if both send first, nobody receives.";
  }
  const auto* one = find_kind(WaitKind::collective);
  const auto* other = find([one](const Wait& wait, const Need&) { return wait.group != one->group; });
  if (other != nullptr) {
    return "Groups " + std::string(group_name(*board_, one->group)) + " and " +
           std::string(group_name(*board_, other->group)) +
           " are waited for crosswise. Ranks that are in both must call them in one order: look for two calls that "
           "change places, or one that a branch leaves out.";
  }
  return "A call that one rank makes and another does not, or makes in another order, lies before these places. "
         "Compare the ways of the ranks to them.";
}

VerdictDocument Judge::deadlock(const View& view, const std::vector<int>& stuck) const {
  VerdictDocument document{.verdict = "deadlock", .first = first_of(view.nodes, stuck)};
  std::int64_t since = 0;
  std::set<int> shown(stuck.begin(), stuck.end());
  for (const int rank : stuck) {
    const auto index = static_cast<std::size_t>(rank);
    for (const auto& wait : view.waits[index]) since = std::max(since, wait.since_ns);
    for (const int target : targets_of(view.nodes[index])) {
      document.edges.emplace_back(rank, target);
      shown.insert(target);
    }
  }
  // The cause names those who wait, and for whom; a rank that is gone ends the chain.
  std::vector<std::pair<std::string, std::vector<int>>> waiting;  // ranks by what is said of them
  for (const int rank : shown) {
    auto standing = standing_of(*board_, rank);
    standing.waits_for = targets_of(view.nodes[static_cast<std::size_t>(rank)]);
    if (standing.state == "blocked") {
      auto text = waited_for(standing, *board_, resolve_) + " for " + awaited(view, standing.waits_for);
      auto same = std::ranges::find(waiting, text, [](const auto& each) { return each.first; });
      if (same == waiting.end()) same = waiting.insert(waiting.end(), {std::move(text), {}});
      same->second.push_back(rank);
    }
    document.ranks.push_back(std::move(standing));
  }
  for (const auto& [text, ranks] : waiting) {
    document.cause += (document.cause.empty() ? "" : "; ") + list_ranks(ranks) +
                      (ranks.size() == 1 ? " waits in " : " wait in ") + text;
  }
  document.since_stall_s = static_cast<double>(now_ns() - since) / 1e9;
  // Who ends well says so; who fails, too. A process that is gone without a word was killed.
  const bool has_failed = std::ranges::any_of(document.ranks, [&](const RankStanding& standing) {
    return view.nodes[static_cast<std::size_t>(standing.rank)].is_gone &&
           board_->seat(standing.rank).life != Life::left;
  });
  if (has_failed) document.verdict = "rank_failed";
  document.hint = has_failed ? kHintOfFailure : hint_for(view, stuck);
  return document;
}

std::string Judge::awaited(const View& view, const std::vector<int>& targets) const {
  std::string whom;
  for (const int target : targets) {
    if (!view.nodes[static_cast<std::size_t>(target)].is_gone) continue;
    whom += (whom.empty() ? "" : ", and for ") + end_of(*board_, target, resolve_);
  }
  if (!whom.empty()) return whom;
  return targets.empty() ? "nobody" : list_ranks(targets);
}

std::optional<VerdictDocument> Judge::straggler(const View& view) const {
  const auto limit = static_cast<std::int64_t>(options_.stall_s * 1e9);
  for (std::size_t rank = 0; rank < view.nodes.size(); ++rank) {
    for (const auto& wait : view.waits[rank]) {
      if (now_ns() - wait.since_ns < limit) continue;
      // Those at the end of the chain, who run; never one under a debugger.
      for (const int late : targets_of(view.nodes[rank])) {
        const auto& node = view.nodes[static_cast<std::size_t>(late)];
        const auto standing = standing_of(*board_, late);
        if (!node.needs.empty() || standing.state != "running") continue;
        VerdictDocument document{.verdict = "straggler", .first = late};
        for (int other = 0; other < board_->world_size(); ++other)
          document.ranks.push_back(standing_of(*board_, other));
        document.edges.emplace_back(static_cast<int>(rank), late);
        document.since_stall_s = static_cast<double>(now_ns() - wait.since_ns) / 1e9;
        document.cause = "rank " + std::to_string(late) + " lets others wait, longer than the limit: since " +
                         waited_for(standing, *board_, resolve_) + " it has not come to " +
                         waited_for(standing_of(*board_, static_cast<int>(rank)), *board_, resolve_) + " of rank " +
                         std::to_string(rank);
        document.hint = "It runs, and is late. --on-verdict stacks shows what it is doing.";
        return document;
      }
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::sim
