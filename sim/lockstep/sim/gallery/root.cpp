// The ranks disagree about who is the root.
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// After a restart, whoever has a checkpoint sends it to the others. Rank 2 has an old one lying about.
LOCKSTEP_FAULT(root_is_who_has_a_checkpoint, 3) {
  const bool has_checkpoint = rank.rank() != 1;
  const int holder = has_checkpoint ? rank.rank() : 0;
  const auto weights = torch::ones({4, 4});
  rank.world().broadcast(weights, {.root = Member::global(holder)}).wait();  // verdict: rank 2 here: mismatch
}

// Results go to the last rank, which writes them. Rank 0 still has the number from when there were two ranks.
LOCKSTEP_FAULT(root_of_a_smaller_world, 3) {
  const auto accuracy = torch::ones({1});
  const int writer = rank.rank() == 0 ? 1 : rank.world_size() - 1;
  rank.world().reduce(accuracy, {.root = Member::global(writer)}).wait();  // verdict: rank 0 here: mismatch
}

// All take the weights of the rank with the best score. Rank 3 looks at the scores of the epoch before.
LOCKSTEP_FAULT(root_with_the_best_score, 4) {
  auto scores = torch::empty({4});
  rank.world().all_gather(scores, torch::full({1}, rank.rank() == 2 ? 0.9 : 0.5)).wait();
  const auto seen = rank.rank() == 3 ? torch::tensor({0.1, 0.8, 0.2, 0.3}) : scores;
  const auto best = Member::global(static_cast<int>(seen.argmax().item<std::int64_t>()));
  const auto weights = torch::ones({4});
  rank.world().broadcast(weights, {.root = best}).wait();  // verdict: rank 3 here: mismatch
}

// Rank 1 thinks that it hands out the shards, and so has them.
LOCKSTEP_FAULT(root_of_a_scatter, 3) {
  const int root = rank.rank() == 1 ? 1 : 0;
  std::vector<torch::Tensor> shards;
  if (rank.rank() == root) shards.assign(3, torch::ones({4}));
  const auto shard = torch::empty({4});
  rank.world().scatter(shard, shards, {.root = Member::global(root)}).wait();  // verdict: rank 1 here: mismatch
}

// Ranks 1, 2 and 3 make a group whose rank 1 is the world's rank 2. Rank 3 means the world's rank 1 as the others do,
// and gives a group's number.
LOCKSTEP_FAULT(root_counted_within_the_group, 4) {
  const auto group = rank.world().new_group({1, 2, 3}, "decoder");
  if (group) {
    const auto weights = torch::ones({4});
    const auto first = rank.rank() == 3 ? Member::group(1) : Member::global(1);
    group.broadcast(weights, {.root = first}).wait();  // verdict: rank 3 here: mismatch
  }
  rank.world().barrier().wait();
}

}  // namespace
}  // namespace lockstep::sim::gallery
