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

using Class = std::vector<MemberCall>;

// Ranks by what they call; the largest class first, and of equal ones the one with the lowest rank.
template <typename Agree>
std::vector<Class> classes_of(const std::vector<MemberCall>& calls, Agree&& agree) {
  std::vector<Class> classes;
  for (const auto& call : calls) {
    const auto fits =
        std::ranges::find_if(classes, [&](const Class& members) { return agree(members.front().call, call.call); });
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

bool agree_in_content(const layout::CallRecord& a, const layout::CallRecord& b) {
  return a.fingerprint == b.fingerprint && !known_and_differ(a.label_hash, b.label_hash);
}

std::vector<Class> classes_by_place(std::vector<MemberCall> calls) {
  std::erase_if(calls, [](const MemberCall& call) { return call.call.site_hash == 0; });
  return classes_of(calls, [](const auto& a, const auto& b) { return a.site_hash == b.site_hash; });
}

std::vector<int> ranks_of(const Class& members) {
  std::vector<int> ranks;
  for (const auto& member : members) ranks.push_back(member.rank);
  return ranks;
}

std::string sentence(const Class& members, const CheckedRank& rank) {
  const auto& [first, call] = members.front();
  return list_ranks(ranks_of(members)) + (members.size() == 1 ? " calls " : " call ") +
         describe(call, rank.board(), first) + at_place(call.site, rank.board().seat(first), rank.resolver());
}

// The odd one comes first in the sentence.
std::string cause_of_calls(const std::vector<Class>& classes, const CheckedRank& rank) {
  std::string cause;
  for (auto at = classes.rbegin(); at != classes.rend(); ++at) {
    cause += (cause.empty() ? "" : "; ") + sentence(*at, rank);
  }
  return cause;
}

std::string cause_of_places(const std::vector<Class>& classes, const CheckedRank& rank) {
  std::vector<Callers> callers;
  for (auto at = classes.rbegin(); at != classes.rend(); ++at) {
    const auto& [first, call] = at->front();
    callers.push_back(
        {.place = place_of(call.site, rank.board().seat(first), rank.resolver()), .ranks = ranks_of(*at)});
  }
  return describe_sites(classes.front().front().call, rank.board(), callers);
}

// Of calls whose tensors differ. It says which one does, where there are several and that is known.
std::string hint_for_tensors(const layout::CallRecord& a, const layout::CallRecord& b) {
  if (a.num_tensors != b.num_tensors) {
    return "All ranks must pass equally many tensors: here are " + std::to_string(a.num_tensors) + " against " +
           std::to_string(b.num_tensors) + ".";
  }
  const auto of_a = describe_tensors({a.words.data(), a.num_words});
  const auto of_b = describe_tensors({b.words.data(), b.num_words});
  const auto [in_a, in_b] = std::ranges::mismatch(of_a, of_b);
  const auto num_equal = in_a - of_a.begin();
  const auto of_all = " of " + std::to_string(a.num_tensors);
  if (in_a == of_a.end() || in_b == of_b.end()) {
    return "All ranks must pass the same tensors in one order. The first " + std::to_string(num_equal) + of_all +
           " agree; the difference is in a later one.";
  }
  const auto dtype = [](const std::string& tensor) { return tensor.substr(0, tensor.find(' ')); };
  const std::string hint =
      dtype(*in_a) != dtype(*in_b)
          ? "All ranks must pass the same dtype. Look for a cast, an autocast or a default dtype that one rank lacks."
          : "All ranks must pass tensors of one shape. Pad with pad_across_processes, or gather objects.";
  if (a.num_tensors == 1) return hint;
  return hint + " Tensor " + std::to_string(num_equal + 1) + of_all + ": " + *in_a + " against " + *in_b + ".";
}

std::string hint_for_call(const layout::CallRecord& a, const layout::CallRecord& b) {
  if (a.operation != b.operation) {
    return "The ranks took different ways through the program. Look for a branch, a loop count or an early return that "
           "depends on the rank or on its data, between the last call that they share and these two.";
  }
  if (known_and_differ(a.label_hash, b.label_hash)) {
    return "The ranks make the calls for these tensors in another order. Shapes alone would not have told.";
  }
  if (a.form != b.form && static_cast<Operation>(a.operation) == Operation::barrier) {
    return "All ranks must call the barrier, or all the monitored one.";
  }
  if (a.form != b.form) {
    const auto words_of = [](const auto& call) { return std::string(form_words(static_cast<Form>(call.form))); };
    return "All ranks must use one form of the operation: here are " + words_of(a) + " and " + words_of(b) + ".";
  }
  if (a.reduce_op != b.reduce_op) return "All ranks must reduce with the same operator.";
  if (a.peer != b.peer) return "All ranks must name the same root.";
  return hint_for_tensors(a, b);
}

std::string hint_for(const layout::CallRecord& a, const layout::CallRecord& b) {
  auto hint = hint_for_call(a, b);
  if (a.operation == b.operation && known_and_differ(a.site_hash, b.site_hash)) {
    hint +=
        " Or the calls do not belong together: they come from different lines, as where one rank has taken another "
        "way through the program.";
  }
  return hint;
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
        return record ? at_place(record->site, seat, posted.rank->resolver()) : "";
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
  throw VerdictReached(to_json(document, rank.board(), rank.resolver()));
}

void add_standings(VerdictDocument& document, const std::vector<MemberCall>& calls) {
  for (const auto& [rank, call] : calls) document.ranks.push_back({.rank = rank, .state = "blocked", .call = call});
}

}  // namespace

void throw_mismatch(const Posted& posted, const std::vector<int>& members) {
  auto& rank = *posted.rank;
  const auto found_ns = now_ns();
  const auto calls = calls_of_those_who_come(posted, members);
  const auto by_content = classes_of(calls, agree_in_content);
  const bool is_of_places = by_content.size() < 2 && rank.options().strict_places;
  const auto classes = is_of_places ? classes_by_place(calls) : by_content;
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
    document.cause = is_of_places ? cause_of_places(classes, rank) : cause_of_calls(classes, rank);
    document.hint = is_of_places
                        ? "The calls agree, and come from different lines: --strict-places makes that a mismatch."
                        : hint_for(classes.back().front().call, classes.front().front().call);
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
