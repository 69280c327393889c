#include "lockstep/sim/gallery/generated/completion.h"

namespace lockstep::sim::generated {
namespace {

// Ranks counted from the root, in a binomial tree: the parent of 6 (110) is 2 (10), its children 6 + 8, 6 + 16 ...
int parent_of(int position) {
  int highest = 1;
  while (highest * 2 <= position) highest *= 2;
  return position - highest;
}

std::vector<int> relatives_in_broadcast(const Part& part) {
  const int position = (part.member - part.root + part.num_members) % part.num_members;
  std::vector<int> positions;
  for (int ancestor = position; ancestor != 0;) {
    ancestor = parent_of(ancestor);
    positions.push_back(ancestor);
  }
  for (int bit = 1; position + bit < part.num_members; bit *= 2) {
    if (bit > position) positions.push_back(position + bit);
  }
  for (int& each : positions) each = (each + part.root) % part.num_members;
  return positions;
}

}  // namespace

std::vector<int> needed_members(const Part& part) {
  if (part.action == Action::broadcast) return relatives_in_broadcast(part);
  const bool is_to_or_from_root = part.action == Action::gather || part.action == Action::scatter;
  if (is_to_or_from_root && part.member != part.root) return {part.root};
  std::vector<int> others;
  for (int member = 0; member < part.num_members; ++member) {
    if (member != part.member) others.push_back(member);
  }
  return others;
}

}  // namespace lockstep::sim::generated
