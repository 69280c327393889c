#include "lockstep/sim/check/mismatch.h"

#include <unistd.h>

#include <algorithm>

#include "lockstep/sim/check/judge.h"
#include "lockstep/sim/check/verdict_document.h"

namespace lockstep::sim {
namespace {

// How long the others get to show what they call, so that the odd one can be told. Those that compute do not come.
constexpr std::int64_t kShowUpNs = 250'000'000;

struct MemberCall {
  int rank = 0;  // in the world
  layout::CallRecord call;
};

std::vector<MemberCall> calls_at(const Posted& posted, const std::vector<int>& members) {
  std::vector<MemberCall> calls;
  for (const int rank : members) {
    const auto& seat = posted.rank->board().seat(rank);
    const auto& line = seat.groups[static_cast<std::size_t>(posted.group)].lines[posted.sequence % layout::kRing];
    if (line.sequence.load(std::memory_order_acquire) != posted.sequence) continue;
    if (const auto call = record_of(seat, line.number)) calls.push_back({.rank = rank, .call = *call});
  }
  return calls;
}

std::vector<MemberCall> calls_of_those_who_come(const Posted& posted, const std::vector<int>& members) {
  const auto deadline = now_ns() + kShowUpNs;
  auto calls = calls_at(posted, members);
  while (calls.size() < members.size() && now_ns() < deadline) {
    usleep(1000);
    calls = calls_at(posted, members);
  }
  return calls;
}

// Ranks by what they call; the largest class first, and of equal ones the one with the lowest rank.
std::vector<std::vector<MemberCall>> classes_of(const std::vector<MemberCall>& calls) {
  std::vector<std::vector<MemberCall>> classes;
  for (const auto& call : calls) {
    const auto fits = std::ranges::find_if(classes, [&call](const auto& members) {
      const auto& other = members.front().call;
      return other.fingerprint == call.call.fingerprint && !labels_differ(other.label_hash, call.call.label_hash);
    });
    if (fits == classes.end()) {
      classes.push_back({call});
    } else {
      fits->push_back(call);
    }
  }
  std::ranges::sort(classes, [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front().rank < b.front().rank;
  });
  return classes;
}

std::string sentence(const std::vector<MemberCall>& members, const CheckedRank& rank) {
  std::vector<int> ranks;
  for (const auto& member : members) ranks.push_back(member.rank);
  const auto& call = members.front().call;
  auto text = list_ranks(ranks) + (ranks.size() == 1 ? " calls " : " call ") +
              describe(call, rank.board(), members.front().rank);
  const auto place = place_of(call, rank.board().seat(members.front().rank), rank.resolver());
  return place.empty() ? text : text + " at " + place;
}

std::string hint_for(const layout::CallRecord& a, const layout::CallRecord& b) {
  if (a.operation != b.operation) {
    return "The ranks took different ways through the program. Look for a branch, a loop count or an early return that "
           "depends on the rank or on its data, between the last call that they share and these two.";
  }
  if (labels_differ(a.label_hash, b.label_hash)) {
    return "The ranks make the calls for these tensors in another order. Shapes alone would not have told.";
  }
  if (a.form != b.form)
    return "All ranks must use one form of the operation: the plain one, the one on a single tensor, or the coalesced "
           "one.";
  if (a.reduce_op != b.reduce_op) return "All ranks must reduce with the same operator.";
  if (a.peer != b.peer) return "All ranks must name the same root.";
  if (a.num_words > 0 && b.num_words > 0 && a.words[0] != b.words[0]) {
    return "All ranks must pass the same dtype. Look for a cast, an autocast or a default dtype that one rank lacks.";
  }
  if (std::ranges::equal(a.words, b.words) && a.num_words == b.num_words) {
    return "The calls agree, and come from different lines: --strict-places makes that a mismatch.";
  }
  return "All ranks must pass tensors of one shape. Pad with pad_across_processes, or gather objects.";
}

std::string describe_split_difference(const Posted& posted, const layout::CallRecord& call,
                                      const std::vector<int>& members) {
  const auto splits_of = [&](int rank) -> std::optional<layout::Splits> {
    const auto& seat = posted.rank->board().seat(rank);
    const auto& line = seat.groups[static_cast<std::size_t>(posted.group)].lines[posted.sequence % layout::kRing];
    const auto number = line.number.load();
    auto splits = seat.splits[number % layout::kSplitsRing].load();
    return splits && splits->number == number ? splits : std::nullopt;
  };
  for (std::size_t from = 0; from < members.size(); ++from) {
    for (std::size_t to = 0; to < members.size(); ++to) {
      const auto sender = splits_of(members[from]);
      const auto receiver = splits_of(members[to]);
      if (!sender || !receiver || to >= sender->count || from >= receiver->count) continue;
      if (sender->sends[to] == receiver->receives[from]) continue;
      const auto call_at = [&](int rank) {
        const auto& seat = posted.rank->board().seat(rank);
        const auto record = record_of(seat, splits_of(rank)->number);
        const auto place = record ? place_of(*record, seat, posted.rank->resolver()) : "";
        return place.empty() ? "" : " at " + place;
      };
      const auto whom = to == from ? "itself" : "rank " + std::to_string(members[to]);
      return "rank " + std::to_string(members[from]) + " sends " + std::to_string(sender->sends[to]) + " elements to " +
             whom + " in " + describe(call, posted.rank->board(), posted.rank->rank()) + call_at(members[from]) +
             ", which expects " + std::to_string(receiver->receives[from]) + (to == from ? "" : call_at(members[to]));
    }
  }
  return "the split sizes of " + describe(call, posted.rank->board(), posted.rank->rank()) + " do not fit together";
}

[[noreturn]] void post_and_throw(CheckedRank& rank, const VerdictDocument& document) {
  rank.conclude(to_json(document, rank.board(), rank.resolver()));
  while (rank.options().hold) pause();  // for the debugger that will come
  rank.board().wait_for_verdict(1000);  // another rank may be at it
  rank.throw_if_judged();
  throw VerdictReached(document.cause, "{}");
}

void add_standings(VerdictDocument& document, const std::vector<MemberCall>& calls) {
  for (const auto& [rank, call] : calls) document.ranks.push_back({.rank = rank, .state = "blocked", .call = call});
}

}  // namespace

void throw_mismatch(const Posted& posted, const std::vector<int>& members) {
  auto& rank = *posted.rank;
  const auto found_ns = now_ns();
  const auto calls = calls_of_those_who_come(posted, members);
  const auto classes = classes_of(calls);
  VerdictDocument document{.verdict = "mismatch"};
  if (classes.size() < 2) {  // the calls agree but for the sizes that an all-to-all sends from rank to rank
    document.cause =
        describe_split_difference(posted, calls.empty() ? layout::CallRecord{} : calls.front().call, members);
    document.hint =
        "What one rank sends another must be what that one expects: input_splits[j] of rank i is "
        "output_splits[i] of rank j.";
  } else {
    const bool is_majority = classes[0].size() > classes[1].size();
    if (is_majority && classes.size() == 2 && classes[1].size() == 1) document.first = classes[1].front().rank;
    // The odd one comes first in the sentence.
    for (auto at = classes.rbegin(); at != classes.rend(); ++at) {
      document.cause += (document.cause.empty() ? "" : "; ") + sentence(*at, rank);
    }
    document.hint = hint_for(classes[0].front().call, classes[1].front().call);
  }
  add_standings(document, calls);
  for (const int member : members) {
    if (std::ranges::none_of(calls, [member](const auto& call) { return call.rank == member; })) {
      document.ranks.push_back(standing_of(rank.board(), member));
    }
  }
  std::ranges::sort(document.ranks, {}, &RankStanding::rank);
  document.since_stall_s = static_cast<double>(now_ns() - found_ns) / 1e9;
  post_and_throw(rank, document);
}

void compare_ends(const Posted& posted, const ChannelId& channel, const std::vector<int>& members,
                  const layout::CallRecord& call) {
  auto& rank = *posted.rank;
  const int partner = members[static_cast<std::size_t>(channel.peer)];
  auto& seat = rank.board().seat(partner);
  const auto* theirs = find_channel(
      seat, {.group = channel.group, .peer = posted.group_rank, .tag = channel.tag, .sends = !channel.sends}, false);
  if (theirs == nullptr || theirs->posted.load(std::memory_order_seq_cst) < posted.sequence) return;
  const auto& line = theirs->lines[posted.sequence % layout::kChannelRing];
  if (line.sequence.load(std::memory_order_acquire) != posted.sequence) {
    ++rank.seat().num_uncompared;
    return;
  }
  if (line.fingerprint.load(std::memory_order_relaxed) == call.fingerprint) return;
  const auto their_call = record_of(seat, line.number);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!their_call || line.sequence.load(std::memory_order_relaxed) != posted.sequence) return;
  const auto found_ns = now_ns();
  VerdictDocument document{.verdict = "mismatch"};
  const MemberCall mine{.rank = rank.rank(), .call = call};
  const MemberCall other{.rank = partner, .call = *their_call};
  document.cause =
      sentence({channel.sends ? mine : other}, rank) + "; " + sentence({channel.sends ? other : mine}, rank);
  document.hint = "A send and its receive must agree on dtype and number of elements.";
  add_standings(document, {mine, other});
  std::ranges::sort(document.ranks, {}, &RankStanding::rank);
  document.since_stall_s = static_cast<double>(now_ns() - found_ns) / 1e9;
  post_and_throw(rank, document);
}

bool splits_differ(const Posted& posted, const Call& call, const layout::RankSeat& theirs, int member,
                   std::uint64_t number) {
  const auto splits = theirs.splits[number % layout::kSplitsRing].load();
  if (!splits || splits->number != number) return false;
  const auto me = static_cast<std::size_t>(posted.group_rank);
  const auto them = static_cast<std::size_t>(member);
  if (me >= splits->count || them >= call.sends.size()) return false;
  return call.sends[them] != splits->receives[me] || call.receives[them] != splits->sends[me];
}

}  // namespace lockstep::sim
