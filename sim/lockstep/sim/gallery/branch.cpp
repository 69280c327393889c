// A call inside an `if` whose condition does not hold on all ranks.
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// Gradients are clipped by their norm over all ranks, where a rank's own norm is large. Only rank 1's is.
LOCKSTEP_FAULT(branch_on_the_own_norm, 3) {
  for (int step = 0; step < 4; ++step) {
    const auto gradient = torch::full({8}, rank.rank() == 1 && step == 2 ? 9.0 : 0.1);
    const auto norm = gradient.norm();
    if (norm.item<double>() > 1) {
      rank.world().all_reduce(norm, {.op = ReduceOp::max}).wait();  // verdict: rank 1 here: mismatch
      gradient.div_(norm);
    }
    rank.world().all_reduce(gradient).wait();
  }
}

// A step whose loss is not a number is skipped, before the call. The loss is not a number on rank 2 alone.
LOCKSTEP_FAULT(branch_on_a_loss_that_is_nan, 3) {
  const auto gradient = torch::ones({8});
  for (int step = 0; step < 5; ++step) {
    const double loss = rank.rank() == 2 && step == 1 ? std::numeric_limits<double>::quiet_NaN() : 0.7;
    if (std::isnan(loss)) continue;
    rank.world().all_reduce(gradient).wait();  // verdict: rank 2 here: deadlock
  }
}

// Only rank 0 prints, so that only rank 0 takes the mean that it prints.
LOCKSTEP_FAULT(branch_for_the_log, 3) {
  const auto loss = torch::ones({1});
  const auto gradient = torch::ones({8});
  for (int step = 0; step < 4; ++step) {
    rank.world().all_reduce(gradient).wait();
    if (rank.rank() == 0 && step % 2 == 1) {
      rank.world().all_reduce(loss, {.op = ReduceOp::avg}).wait();  // verdict: rank 0 here: mismatch
      std::printf("step %d: loss %.2f\n", step, loss.item<double>());
    }
  }
}

// Each rank stops when its own score is good enough. Rank 2's is, and it goes on to what comes after training.
LOCKSTEP_FAULT(branch_to_stop_early, 3) {
  const auto gradient = torch::ones({8});
  for (int epoch = 0; epoch < 4; ++epoch) {
    rank.world().all_reduce(gradient).wait();
    const double score = rank.rank() == 2 && epoch == 1 ? 0.9 : 0.5;
    if (score > 0.8) break;
  }
  const auto result = torch::ones({2});
  rank.world().broadcast(result).wait();  // verdict: rank 2 here: mismatch
}

// Layers are left out at random. The generators were seeded with the rank, and rank 1's first number is the only odd
// one.
LOCKSTEP_FAULT(branch_on_a_random_number, 3) {
  std::mt19937 random(static_cast<unsigned>(rank.rank()));
  const auto layer = torch::ones({4, 4});
  const auto head = torch::ones({4});
  const bool is_left_out = random() % 2 == 1;
  if (!is_left_out) rank.world().all_reduce(layer).wait();
  rank.world().all_reduce(head).wait();  // verdict: rank 1 here: mismatch
}

// Whoever has the vocabulary in its cache needs none. Rank 3 runs on a machine that was used before.
LOCKSTEP_FAULT(branch_on_a_warm_cache, 4) {
  const auto vocabulary = torch::zeros({64}, torch::kInt);
  const bool is_in_cache = rank.rank() == 3;
  if (!is_in_cache) rank.world().broadcast(vocabulary).wait();
  const auto all = torch::empty({4}, torch::kLong);
  const auto num_words = torch::full({1}, vocabulary.numel(), torch::kLong);
  rank.world().all_gather(all, num_words).wait();  // verdict: rank 3 here: mismatch
}

// Recall is undefined without positive samples, so a rank without any leaves it out.
LOCKSTEP_FAULT(branch_on_the_labels, 3) {
  const auto labels = rank.rank() == 1 ? torch::zeros({4}) : torch::ones({4});
  const auto num_right = torch::full({1}, 3.0);
  const auto recall = torch::zeros({2});
  if (labels.sum().item<double>() > 0) rank.world().all_reduce(recall).wait();
  rank.world().all_reduce(num_right).wait();  // verdict: rank 1 here: mismatch
}

}  // namespace
}  // namespace lockstep::sim::gallery
