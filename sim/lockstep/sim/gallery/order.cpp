// The same calls on every rank, in another order on one.
#include <algorithm>

#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// After each step the loss is averaged, then rank 0 says whether training goes on. A branch that was meant to save rank
// 1 some work has the two turned round.
LOCKSTEP_FAULT(order_broadcast_before_reduce, 3) {
  const auto loss = torch::ones({1});
  const auto goes_on = torch::ones({1}, torch::kBool);
  for (int step = 0; step < 4; ++step) {
    if (rank.rank() == 1 && step == 3) {
      rank.world().broadcast(goes_on).wait();  // verdict: rank 1 here: mismatch
      rank.world().all_reduce(loss).wait();
    } else {
      rank.world().all_reduce(loss).wait();
      rank.world().broadcast(goes_on).wait();
    }
  }
}

// Gradients are averaged by hand, one parameter after the other: in the order of registration, but on rank 2, where
// they come out of a sorted map.
LOCKSTEP_FAULT(order_parameters_sorted_by_name, 3) {
  std::vector<std::pair<std::string, torch::Tensor>> gradients = {
      {"encoder.weight", torch::ones({8, 4})}, {"bias", torch::ones({8})}, {"decoder.weight", torch::ones({4, 8})}};
  if (rank.rank() == 2) std::ranges::sort(gradients, {}, [](const auto& named) { return named.first; });
  for (const auto& [name, gradient] : gradients) {
    rank.world().all_reduce(gradient, {.op = ReduceOp::avg}).wait();  // verdict: rank 2 here: mismatch
  }
}

// The others wait until rank 0 has the data set, then rank 0's seed goes round. Rank 3 has its data on a local disk,
// and so does not mind being early with the seed.
LOCKSTEP_FAULT(order_seed_before_data, 4) {
  const auto seed = torch::full({1}, 17, torch::kLong);
  const auto wait_for_data = [&] { rank.world().barrier().wait(); };
  const auto share_seed = [&] {
    rank.world().broadcast(seed).wait();  // verdict: rank 3 here: mismatch
    torch::manual_seed(static_cast<std::uint64_t>(seed.item<std::int64_t>()));
  };
  if (rank.rank() == 3) {
    share_seed();
    wait_for_data();
  } else {
    wait_for_data();
    share_seed();
  }
}

// Metrics are summed in the order in which they were first recorded. Rank 0 records the confusion matrix early, since
// it draws it.
LOCKSTEP_FAULT(order_metrics_as_recorded, 3) {
  const auto loss = torch::ones({1});
  const auto confusion = torch::ones({3, 3});
  std::vector<torch::Tensor> recorded = {loss, confusion};
  if (rank.rank() == 0) recorded = {confusion, loss};
  for (const auto& metric : recorded) {
    rank.world().reduce(metric).wait();  // verdict: rank 0 here: mismatch
  }
}

// Buckets are posted as they become ready, and waited for at the end. They may be waited for in any order; they may not
// be posted in one that differs. Both have six elements, so that without a check their sums are mixed up in silence.
LOCKSTEP_FAULT(order_buckets_as_they_become_ready, 3) {
  std::vector<torch::Tensor> buckets = {torch::ones({6}), torch::ones({2, 3})};
  if (rank.rank() == 1) std::swap(buckets[0], buckets[1]);
  std::vector<comm::Work> works;
  for (const auto& bucket : buckets) {
    works.push_back(rank.world().all_reduce(bucket));  // verdict: rank 1 here: mismatch
  }
  for (auto& work : works) work.wait();
}

// Rank 0 hands out tasks and collects results. It was rewritten to collect those of the round before first, which in
// the first round are not there.
LOCKSTEP_FAULT(order_results_before_tasks, 3) {
  const auto task = torch::zeros({2});
  const auto result = torch::zeros({2});
  if (rank.rank() == 0) {
    const std::vector<torch::Tensor> three(3, torch::ones({2}));
    rank.world().gather({task.clone(), task.clone(), task.clone()}, result).wait();  // verdict: rank 0 here: mismatch
    rank.world().scatter(task, three).wait();
  } else {
    rank.world().scatter(task, {}).wait();
    rank.world().gather({}, result).wait();
  }
}

// Two sums of one shape, swapped on rank 1: every backend adds the one to the other without a word. They have names, so
// that the swap is seen.
LOCKSTEP_FAULT(order_equal_shapes_by_name, 3) {
  const auto correct = torch::ones({1});
  const auto total = torch::full({1}, 100);
  name(correct, "correct");
  name(total, "total");
  std::vector<torch::Tensor> sums = {correct, total};
  if (rank.rank() == 1) std::ranges::reverse(sums);
  for (const auto& sum : sums) {
    rank.world().all_reduce(sum).wait();  // verdict: rank 1 here: mismatch
  }
}

}  // namespace
}  // namespace lockstep::sim::gallery
