#include "lockstep/sim/gallery/generated/faults.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace lockstep::sim::generated {
namespace {

using Calls = std::vector<Call>;

constexpr std::array<std::string_view, 13> kWords = {"drop",  "duplicate", "swap", "action", "reduction",
                                                     "dtype", "shape",     "root", "group",  "tag",
                                                     "leave", "fail",      "loop"};
constexpr int kOneRowMore = 0;
constexpr int kOtherOrder = 1;
constexpr int kLongestBlock = 6;

// All numbers below `count` but the one that stands there already.
std::vector<int> others_below(int count, int present) {
  std::vector<int> values;
  for (int value = 0; value < count; ++value) {
    if (value != present) values.push_back(value);
  }
  return values;
}

std::vector<int> once_if(bool holds) { return holds ? std::vector{0} : std::vector<int>{}; }

std::vector<std::int64_t> other_order(std::vector<std::int64_t> shape) {
  std::ranges::reverse(shape);
  return shape;
}

std::vector<int> other_actions(const Call& call) {
  if (is_point_to_point(call.action)) {
    return {static_cast<int>(call.action == Action::send ? Action::receive : Action::send)};
  }
  if (!is_collective(call.action) || !has_tensor(call.action)) return {};
  return others_below(static_cast<int>(Action::barrier) + 1, static_cast<int>(call.action));
}

std::vector<int> other_shapes(const Call& call) {
  if (!has_tensor(call.action)) return {};
  // The ends of a message may shape it as they like.
  if (is_point_to_point(call.action) || other_order(call.shape) == call.shape) return {kOneRowMore};
  return {kOneRowMore, kOtherOrder};
}

std::vector<int> other_roots(const Call& call, const Group& group) {
  if (!has_root(call.action)) return {};
  auto roots = group.ranks;
  std::erase(roots, call.peer);
  return roots;
}

// Groups in which the rank, and whom it names, are members as well.
std::vector<int> other_groups(const Program& program, int rank, const Call& call) {
  if (!is_checked(call.action)) return {};
  auto groups = others_below(static_cast<int>(program.groups.size()), call.group);
  std::erase_if(groups, [&](int index) {
    const auto& group = program.groups[static_cast<std::size_t>(index)];
    const bool names_peer = has_root(call.action) || is_point_to_point(call.action);
    return !is_member(group, rank) || (names_peer && !is_member(group, call.peer));
  });
  return groups;
}

// Whether something that was started before the position is waited for only after it.
bool has_calls_under_way(const Calls& calls, int position) {
  std::set<int> lines;
  for (int at = 0; at < position; ++at) {
    const auto& call = calls[static_cast<std::size_t>(at)];
    if (call.asynchronous) lines.insert(call.line);
    if (call.action == Action::wait) lines.erase(call.awaited);
  }
  return !lines.empty();
}

// The last call, the barrier for all, stays out of every loop.
std::vector<int> blocks(const Calls& calls, int position) {
  std::vector<int> lengths;
  const int most = static_cast<int>(calls.size()) - 1 - position;
  for (int length = 2; length <= std::min(most, kLongestBlock); ++length) {
    lengths.push_back(length);
    lengths.push_back(-length);
  }
  return lengths;
}

// The same tensor, in another operation; what that does not have is as it is by default.
void change_action(Call& call, Action action, const Group& group) {
  const Call usual;
  if (has_root(action) && !has_root(call.action)) call.peer = group.ranks.front();
  if (is_collective(action) && !has_root(action)) call.peer = usual.peer;
  if (!has_reduction(action)) call.reduction = usual.reduction;
  if (!has_tensor(action)) {
    call.dtype = usual.dtype;
    call.shape.clear();
    call.label.clear();
  }
  call.action = action;
}

void repeat_or_skip(Calls& calls, int position, int length) {
  const auto begin = calls.begin() + position;
  if (length < 0) {
    calls.erase(begin, begin - length);
  } else {
    const Calls block(begin, begin + length);
    calls.insert(begin, block.begin(), block.end());
  }
}

}  // namespace

std::string_view to_word(FaultKind kind) { return kWords.at(static_cast<std::size_t>(kind)); }

const std::vector<FaultKind>& all_fault_kinds() {
  static const auto kinds = [] {
    std::vector<FaultKind> all;
    for (std::size_t kind = 0; kind < kWords.size(); ++kind) all.push_back(static_cast<FaultKind>(kind));
    return all;
  }();
  return kinds;
}

std::string describe(const Fault& fault, const Program& healthy) {
  const auto& calls = healthy.ranks[static_cast<std::size_t>(fault.rank)];
  const auto& call = calls[static_cast<std::size_t>(fault.position)];
  return std::string(to_word(fault.kind)) + " (" + std::to_string(fault.value) + ") on rank " +
         std::to_string(fault.rank) + " at its call " + std::to_string(fault.position) + ", " +
         std::string(to_word(call.action)) + " at line " + std::to_string(call.line);
}

std::vector<int> values_for(FaultKind kind, const Program& healthy, int rank, int position) {
  const auto& calls = healthy.ranks[static_cast<std::size_t>(rank)];
  const auto& call = calls[static_cast<std::size_t>(position)];
  const auto& group = healthy.groups[static_cast<std::size_t>(call.group)];
  switch (kind) {
    case FaultKind::drop: return once_if(call.action != Action::wait);
    case FaultKind::duplicate: return once_if(is_checked(call.action));
    case FaultKind::swap: return once_if(position + 1 < static_cast<int>(calls.size()));
    case FaultKind::action: return other_actions(call);
    case FaultKind::reduction:
      return has_reduction(call.action) ? others_below(4, static_cast<int>(call.reduction)) : std::vector<int>{};
    case FaultKind::dtype:
      return has_tensor(call.action) ? others_below(4, static_cast<int>(call.dtype)) : std::vector<int>{};
    case FaultKind::shape: return other_shapes(call);
    case FaultKind::root: return other_roots(call, group);
    case FaultKind::group: return other_groups(healthy, rank, call);
    case FaultKind::tag: return is_point_to_point(call.action) ? others_below(4, call.tag) : std::vector<int>{};
    case FaultKind::leave: return once_if(!has_calls_under_way(calls, position));
    case FaultKind::fail: return {0};
    case FaultKind::loop: return blocks(calls, position);
  }
  return {};
}

Program with_fault(Program program, const Fault& fault) {
  auto& calls = program.ranks[static_cast<std::size_t>(fault.rank)];
  const auto here = calls.begin() + fault.position;
  const auto& group = program.groups[static_cast<std::size_t>(here->group)];
  switch (fault.kind) {
    case FaultKind::drop: calls.erase(here); break;
    case FaultKind::duplicate: calls.insert(here, Call(*here)); break;
    case FaultKind::swap: std::iter_swap(here, here + 1); break;
    case FaultKind::action: change_action(*here, static_cast<Action>(fault.value), group); break;
    case FaultKind::reduction: here->reduction = static_cast<Reduction>(fault.value); break;
    case FaultKind::dtype: here->dtype = static_cast<Dtype>(fault.value); break;
    case FaultKind::shape:
      if (fault.value == kOneRowMore) {
        ++here->shape.front();
      } else {
        here->shape = other_order(here->shape);
      }
      break;
    case FaultKind::root: here->peer = fault.value; break;
    case FaultKind::group: here->group = fault.value; break;
    case FaultKind::tag: here->tag = fault.value; break;
    case FaultKind::leave: calls.insert(here, {.line = here->line, .action = Action::leave}); break;
    case FaultKind::fail: calls.insert(here, {.line = here->line, .action = Action::fail}); break;
    case FaultKind::loop: repeat_or_skip(calls, fault.position, fault.value); break;
  }
  return program;
}

Fault random_fault(const Program& healthy, Dice& dice) {
  while (true) {
    const auto kind = dice.one_of(all_fault_kinds());
    std::vector<std::pair<int, int>> places;
    for (int rank = 0; rank < healthy.world_size; ++rank) {
      const auto num_calls = static_cast<int>(healthy.ranks[static_cast<std::size_t>(rank)].size());
      for (int position = 0; position < num_calls; ++position) {
        if (!values_for(kind, healthy, rank, position).empty()) places.emplace_back(rank, position);
      }
    }
    if (places.empty()) continue;  // no group but the world, or no messages: a fault of another kind
    const auto [rank, position] = dice.one_of(places);
    const auto value = dice.one_of(values_for(kind, healthy, rank, position));
    return {.kind = kind, .rank = rank, .position = position, .value = value};
  }
}

}  // namespace lockstep::sim::generated
