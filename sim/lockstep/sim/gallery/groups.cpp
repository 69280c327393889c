// Several groups: cycles across them, members that disagree about who belongs to one, ranks that use what is not
// theirs.
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// Each group's calls are in order. But rank 1 waits in the second group for the others, who wait in the first for it.
LOCKSTEP_FAULT(groups_in_opposite_order, 3) {
  const auto gradients = rank.world().new_group({0, 1, 2}, "gradients");
  const auto metrics = rank.world().new_group({0, 1, 2}, "metrics");
  const auto x = torch::ones({4});
  for (int step = 0; step < 3; ++step) {
    const bool metrics_first = rank.rank() == 1 && step == 2;
    const auto& first = metrics_first ? metrics : gradients;
    const auto& second = metrics_first ? gradients : metrics;
    first.all_reduce(x).wait();  // verdict: rank 1 here: deadlock
    second.all_reduce(x).wait();
  }
}

// Neighbours in a ring share a group. All begin at their right side, and so each waits for one who waits further right.
// Were a single rank to begin at its left, the ring would open.
LOCKSTEP_FAULT(groups_in_a_ring, 4) {
  std::vector<comm::ProcessGroup> pairs;
  for (int left = 0; left < 4; ++left) {
    pairs.push_back(rank.world().new_group({left, (left + 1) % 4}, "pair" + std::to_string(left)));
  }
  const auto& right_side = pairs[static_cast<std::size_t>(rank.rank())];
  const auto& left_side = pairs[static_cast<std::size_t>(rank.rank() + 3) % 4];
  const auto edge = torch::ones({2});
  right_side.all_reduce(edge).wait();  // verdict: rank 0 here: deadlock // symmetric
  left_side.all_reduce(edge).wait();
}

// Rank 2's configuration still says that two ranks encode. The others wait for it to join, it waits for them later on.
LOCKSTEP_FAULT(groups_without_a_member, 3) {
  const int num_encoders = rank.rank() == 2 ? 2 : 3;
  std::vector<int> members;
  for (int member = 0; member < num_encoders; ++member) members.push_back(member);
  const auto encoder = rank.world().new_group(members, "encoder");
  rank.world().barrier().wait();  // verdict: rank 2 here: deadlock
}

// Here rank 3 makes a group as well, with another list. The two bear different names and never meet.
LOCKSTEP_FAULT(groups_with_another_list, 4) {
  const std::vector<int> members = rank.rank() == 3 ? std::vector<int>{1, 3} : std::vector<int>{1, 2, 3};
  const auto name = "decoder of " + std::to_string(members.size());
  const auto decoder = rank.world().new_group(members, name);  // verdict: rank 3 here: deadlock
  rank.world().barrier().wait();
}

// All ranks make the same two groups, rank 1 in the order of an unordered set.
LOCKSTEP_FAULT(groups_made_in_another_order, 3) {
  std::vector<std::string> names = {"tensor", "data"};
  if (rank.rank() == 1) std::swap(names[0], names[1]);
  std::vector<comm::ProcessGroup> groups;
  for (const auto& name : names) {
    groups.push_back(rank.world().new_group({0, 1, 2}, name));  // verdict: rank 1 here: deadlock
  }
}

// Rank 2 got no group, for it is no member, and calls nevertheless: an `if (encoder)` is missing. The marked line has
// its last call before that.
LOCKSTEP_FAULT(groups_used_by_a_non_member, 3) {
  const auto encoder = rank.world().new_group({0, 1}, "encoder");
  const auto features = torch::ones({4});
  rank.world().broadcast(features).wait();  // verdict: rank 2 here: rank_failed
  encoder.all_reduce(features).wait();
  rank.world().barrier().wait();
}

// Three ranks train and one evaluates. The evaluating one averages its accuracy over the world, where it meant its own
// group.
LOCKSTEP_FAULT(groups_world_for_group, 4) {
  const auto trainers = rank.world().new_group({0, 1, 2}, "trainers");
  const auto x = torch::ones({4});
  if (trainers) {
    trainers.all_reduce(x).wait();
  } else {
    rank.world().all_reduce(x).wait();  // verdict: rank 3 here: mismatch
  }
  rank.world().barrier().wait();
}

// Rank 1 is done with the side group after two epochs and lets it go; the others use it for a third.
LOCKSTEP_FAULT(groups_let_go_too_early, 3) {
  auto side = rank.world().new_group({0, 1, 2}, "side");
  const auto x = torch::ones({4});
  for (int epoch = 0; epoch < 3; ++epoch) {
    if (side) side.all_reduce(x).wait();
    if (rank.rank() == 1 && epoch == 1) side = {};
  }
  rank.world().barrier().wait();  // verdict: rank 1 here: deadlock
}

}  // namespace
}  // namespace lockstep::sim::gallery
