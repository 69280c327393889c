// One rank makes a call less than the others, or one more.
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// The others meet once more before they end; rank 2 had nothing to write, and leaves.
LOCKSTEP_FAULT(missing_last_barrier, 3) {
  const auto loss = torch::ones({1});
  for (int step = 0; step < 4; ++step) {
    rank.world().all_reduce(loss).wait();  // verdict: rank 2 here: deadlock
  }
  const bool has_results = rank.rank() != 2;
  if (has_results) rank.world().barrier().wait();
}

// Rank 1 resumes, has its seed from the checkpoint, and sees no reason to ask for one.
LOCKSTEP_FAULT(missing_broadcast_of_the_seed, 3) {
  const bool resumes = rank.rank() == 1;
  const auto seed = torch::full({1}, 5, torch::kLong);
  if (!resumes) rank.world().broadcast(seed).wait();
  const auto gradient = torch::ones({4});
  rank.world().all_reduce(gradient).wait();  // verdict: rank 1 here: mismatch
}

// A batch without labels is skipped before the gradient is averaged. All calls look alike, so that rank 1's next one is
// taken for the missing one, step after step, until it ends one call short.
LOCKSTEP_FAULT(missing_call_among_equal_ones, 3) {
  const auto gradient = torch::ones({8});
  for (int step = 0; step < 6; ++step) {
    const int num_labels = rank.rank() == 1 && step == 2 ? 0 : 4;
    if (num_labels == 0) continue;
    rank.world().all_reduce(gradient).wait();  // verdict: rank 1 here: deadlock
  }
}

// A layer that is frozen has no gradient and is passed over; rank 2 has frozen one that the others train.
LOCKSTEP_FAULT(missing_gradient_of_a_frozen_layer, 3) {
  torch::nn::Sequential net(torch::nn::Linear(4, 8), torch::nn::Linear(8, 2));
  if (rank.rank() == 2) {
    for (auto& parameter : net[0]->parameters()) parameter.set_requires_grad(false);
  }
  net->forward(torch::ones({1, 4})).sum().backward();
  for (const auto& parameter : net->parameters()) {
    if (!parameter.grad().defined()) continue;
    rank.world().all_reduce(parameter.grad()).wait();  // verdict: rank 2 here: mismatch
  }
}

// Rank 3 evaluates one data set less, and so gathers once less before all go on to the next epoch.
LOCKSTEP_FAULT(missing_gather_in_the_evaluation, 4) {
  const int num_sets = rank.rank() == 3 ? 1 : 2;
  for (int set = 0; set < num_sets; ++set) {
    const auto all = torch::empty({4});
    rank.world().all_gather(all, torch::full({1}, 0.5)).wait();
  }
  const auto learning_rate = torch::full({1}, 0.1);
  rank.world().broadcast(learning_rate).wait();  // verdict: rank 3 here: mismatch
}

// Rank 1 synchronises once more at the end, to be on the safe side. The others have left by then.
LOCKSTEP_FAULT(missing_everywhere_but_here, 3) {
  const auto weights = torch::ones({8});
  for (int step = 0; step < 3; ++step) rank.world().all_reduce(weights, {.op = ReduceOp::avg}).wait();
  if (rank.rank() == 1) {
    rank.world().all_reduce(weights, {.op = ReduceOp::avg}).wait();  // verdict: rank 1 here: deadlock
  }
}

}  // namespace
}  // namespace lockstep::sim::gallery
