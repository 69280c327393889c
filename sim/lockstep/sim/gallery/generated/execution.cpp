#include "lockstep/sim/gallery/generated/execution.h"

#include <algorithm>
#include <utility>

#include "lockstep/sim/gallery/generated/completion.h"
#include "lockstep/sim/gallery/generated/matching.h"

namespace lockstep::sim::generated {
namespace {

std::size_t member_of(const Group& group, int rank) {
  return static_cast<std::size_t>(std::ranges::find(group.ranks, rank) - group.ranks.begin());
}

}  // namespace

void join(Clock& clock, const Clock& other) {
  for (std::size_t rank = 0; rank < clock.size(); ++rank) clock[rank] = std::max(clock[rank], other[rank]);
}

ChannelId channel_of(int rank, const Call& call) {
  const bool sends = call.action == Action::send;
  return {.group = call.group, .from = sends ? rank : call.peer, .to = sends ? call.peer : rank, .tag = call.tag};
}

Execution::Execution(const Program& program, std::optional<Halt> halt)
    : program_(program), halt_(halt), ranks_(program.ranks.size()), groups_(program.groups.size()) {
  for (auto& rank : ranks_) rank.clock.resize(ranks_.size());
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    groups_[group].posted.resize(program.groups[group].ranks.size());
    groups_[group].done.resize(program.groups[group].ranks.size());
  }
  for (bool moves = true; moves;) {
    moves = false;
    for (int rank = 0; rank < program.world_size; ++rank) {
      while (advance(rank)) moves = true;
    }
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      while (advance(groups_[group], program.groups[group])) moves = true;
    }
  }
}

bool Execution::advance(int rank) {
  auto& self = state(rank);
  if (self.end || self.is_halted) return false;
  if (!self.awaited.empty()) return finish_wait(rank);
  const auto& calls = program_.ranks[static_cast<std::size_t>(rank)];
  if (self.next == calls.size()) {
    count_event(rank);
    self.end = Standing::End::left;
    return true;
  }
  make(rank, calls[self.next++]);
  return true;
}

bool Execution::finish_wait(int rank) {
  auto& self = state(rank);
  const auto* when = done(rank, self.awaited.front());
  if (when == nullptr) return false;
  join(self.clock, *when);
  count_event(rank);
  self.awaited.erase(self.awaited.begin());
  return true;
}

void Execution::make(int rank, const Call& call) {
  auto& self = state(rank);
  switch (call.action) {
    case Action::wait: self.awaited = std::exchange(self.under_way[call.awaited], {}); return;
    case Action::store_wait: self.awaited = {{.call = &call}}; return;
    case Action::store_set:
      count_event(rank);
      keys_.try_emplace(call.key, self.clock);
      return;
    case Action::leave:
    case Action::fail:
      count_event(rank);
      self.end = call.action == Action::leave ? Standing::End::left : Standing::End::failed;
      return;
    default: break;
  }
  const auto posted = post(rank, call);
  (call.asynchronous ? self.under_way[call.line] : self.awaited).push_back(posted);
}

Awaited Execution::post(int rank, const Call& call) {
  auto& self = state(rank);
  count_event(rank);
  self.last = &call;
  const Posted posted{.call = &call, .rank = rank, .clock = self.clock};
  if (is_point_to_point(call.action)) {
    auto& channel = channels_[channel_of(rank, call)];
    auto& calls = call.action == Action::send ? channel.sends : channel.receives;
    calls.push_back(posted);
    return {.call = &call, .sequence = calls.size() - 1};
  }
  const auto group = static_cast<std::size_t>(call.group);
  auto& calls = groups_[group].posted[member_of(program_.groups[group], rank)];
  calls.push_back(posted);
  const auto sequence = calls.size() - 1;
  self.is_halted = halt_ && halt_->group == call.group && halt_->sequence == sequence;
  return {.call = &call, .sequence = sequence};
}

// Each member of a Gloo group does its collectives one after the other, on a thread of their own.
bool Execution::advance(GroupState& group, const Group& members) {
  bool moves = false;
  for (std::size_t member = 0; member < members.ranks.size(); ++member) {
    const auto sequence = group.done[member].size();
    if (group.posted[member].size() <= sequence) continue;
    const auto& own = group.posted[member][sequence];
    const Part part{.action = own.call->action,
                    .member = static_cast<int>(member),
                    .root = has_root(own.call->action) ? static_cast<int>(member_of(members, own.call->peer)) : 0,
                    .num_members = static_cast<int>(members.ranks.size())};
    auto when = own.clock;
    if (sequence > 0) join(when, group.done[member][sequence - 1]);
    const auto needed = needed_members(part);
    const bool is_done = std::ranges::all_of(needed, [&](int other) {
      const auto index = static_cast<std::size_t>(other);
      const bool has_started = group.posted[index].size() > sequence && group.done[index].size() >= sequence;
      if (!has_started || !match(*own.call, *group.posted[index][sequence].call)) return false;
      join(when, group.posted[index][sequence].clock);
      if (sequence > 0) join(when, group.done[index][sequence - 1]);
      return true;
    });
    if (!is_done) continue;
    group.done[member].push_back(std::move(when));
    moves = true;
  }
  return moves;
}

const Clock* Execution::done(int rank, const Awaited& awaited) const {
  const auto& call = *awaited.call;
  if (call.action == Action::store_wait) {
    const auto key = keys_.find(call.key);
    return key == keys_.end() ? nullptr : &key->second;
  }
  if (is_point_to_point(call.action)) {
    const auto& channel = channels_.at(channel_of(rank, call));
    const auto& other_end = call.action == Action::send ? channel.receives : channel.sends;
    if (other_end.size() <= awaited.sequence) return nullptr;
    const auto& other = other_end[awaited.sequence];
    return match(call, *other.call) ? &other.clock : nullptr;
  }
  const auto group = static_cast<std::size_t>(call.group);
  const auto& done = groups_[group].done[member_of(program_.groups[group], rank)];
  return done.size() > awaited.sequence ? &done[awaited.sequence] : nullptr;
}

Standing Execution::standing(int rank) const {
  const auto& self = ranks_[static_cast<std::size_t>(rank)];
  Standing standing{.clock = self.clock, .last = self.last};
  if (self.end) standing.end = *self.end;
  if (!self.end && !self.awaited.empty()) standing.awaited = self.awaited.front();
  return standing;
}

}  // namespace lockstep::sim::generated
