// One rank reduces with another operator: all get numbers, and nobody gets the right ones.
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// Sum and divide, or let the call take the mean: both are right, but not together.
LOCKSTEP_FAULT(reduce_op_sum_for_mean, 3) {
  const auto gradient = torch::ones({8});
  for (int step = 0; step < 3; ++step) {
    const bool divides_itself = rank.rank() == 1 && step == 2;
    const auto op = divides_itself ? ReduceOp::sum : ReduceOp::avg;
    rank.world().all_reduce(gradient, {.op = op}).wait();  // verdict: rank 1 here: mismatch
    if (divides_itself) gradient.div_(rank.world_size());
  }
}

// Training stops when any rank asks for it: a maximum. Rank 2 thinks that all have to ask.
LOCKSTEP_FAULT(reduce_op_all_for_any, 3) {
  const auto wants_to_stop = torch::zeros({1}, torch::kInt);
  const auto op = rank.rank() == 2 ? ReduceOp::min : ReduceOp::max;
  rank.world().all_reduce(wants_to_stop, {.op = op}).wait();  // verdict: rank 2 here: mismatch
}

// Likelihoods multiply, their logarithms add. Rank 0 works with likelihoods, since its part is small.
LOCKSTEP_FAULT(reduce_op_product_of_likelihoods, 3) {
  const bool takes_logarithms = rank.rank() != 0;
  auto likelihood = torch::full({1}, 0.5);
  if (takes_logarithms) likelihood = likelihood.log();
  const auto op = takes_logarithms ? ReduceOp::sum : ReduceOp::product;
  rank.world().reduce(likelihood, {.op = op}).wait();  // verdict: rank 0 here: mismatch
}

// What every rank supports is the intersection of their flags; rank 3 asks for the union.
LOCKSTEP_FAULT(reduce_op_union_of_features, 4) {
  const auto features = torch::full({1}, 0b0110, torch::kLong);
  const auto op = rank.rank() == 3 ? ReduceOp::bor : ReduceOp::band;
  rank.world().all_reduce(features, {.op = op}).wait();  // verdict: rank 3 here: mismatch
}

// The mean over tokens needs the sum of both numerator and denominator. Rank 1 takes the mean of means in its shard.
LOCKSTEP_FAULT(reduce_op_in_reduce_scatter, 3) {
  const auto gradients = torch::ones({6});
  const auto shard = torch::empty({2});
  const auto op = rank.rank() == 1 ? ReduceOp::avg : ReduceOp::sum;
  rank.world().reduce_scatter(shard, gradients, {.op = op}).wait();  // verdict: rank 1 here: mismatch
}

}  // namespace
}  // namespace lockstep::sim::gallery
