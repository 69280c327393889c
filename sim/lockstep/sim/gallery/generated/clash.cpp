#include "lockstep/sim/gallery/generated/clash.h"

#include <algorithm>

#include "lockstep/sim/gallery/generated/matching.h"

namespace lockstep::sim::generated {
namespace {

using Calls = std::vector<Posted>;

void add_clash(std::vector<Clash>& clashes, const Meeting& meeting, const Posted& one, const Posted& other) {
  if (!match(*one.call, *other.call)) clashes.push_back({.meeting = meeting, .one = one, .other = other});
}

// Of two members of a group.
void add_collectives(std::vector<Clash>& clashes, int group, const Calls& one, const Calls& other) {
  for (std::size_t number = 0; number < std::min(one.size(), other.size()); ++number) {
    add_clash(clashes, {.group = group, .number = number}, one[number], other[number]);
  }
}

}  // namespace

std::vector<Clash> clashes_of(const Program& program, const Execution& run) {
  std::vector<Clash> clashes;
  for (int group = 0; group < static_cast<int>(program.groups.size()); ++group) {
    const auto& posted = run.posted(group);
    for (std::size_t one = 0; one < posted.size(); ++one) {
      for (std::size_t other = one + 1; other < posted.size(); ++other) {
        add_collectives(clashes, group, posted[one], posted[other]);
      }
    }
  }
  std::size_t num_messages = 0;
  for (const auto& [id, channel] : run.channels()) {
    for (std::size_t i = 0; i < std::min(channel.sends.size(), channel.receives.size()); ++i) {
      add_clash(clashes, {.number = num_messages++}, channel.sends[i], channel.receives[i]);
    }
  }
  return clashes;
}

}  // namespace lockstep::sim::generated
