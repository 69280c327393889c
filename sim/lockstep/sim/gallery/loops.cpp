// A loop around a call that one rank runs through less often than the others, or more often.
#include "lockstep/data/data_loader.h"
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// 29 batches were dealt to 3 ranks, and rank 2 got one less. It sums its metric while the others still train.
LOCKSTEP_FAULT(loops_over_unequal_shards, 3) {
  const auto gradient = torch::ones({8});
  const int num_batches = rank.rank() < 29 % 3 ? 29 / 3 + 1 : 29 / 3;
  for (int batch = 0; batch < num_batches; ++batch) rank.world().all_reduce(gradient).wait();
  const auto num_right = torch::full({1}, 12, torch::kLong);
  rank.world().all_reduce(num_right).wait();  // verdict: rank 2 here: mismatch
}

// Rank 1 was started with --epochs 3.
LOCKSTEP_FAULT(loops_over_more_epochs, 3) {
  const auto gradient = torch::ones({8});
  const int num_epochs = rank.rank() == 1 ? 3 : 2;
  for (int epoch = 0; epoch < num_epochs; ++epoch) {
    for (int batch = 0; batch < 3; ++batch) {
      rank.world().all_reduce(gradient).wait();  // verdict: rank 1 here: mismatch
    }
  }
  rank.world().barrier().wait();
}

// An inner solver iterates until the residual is small. It is its own residual that rank 3 looks at, and is content
// sooner.
LOCKSTEP_FAULT(loops_until_the_own_residual_is_small, 4) {
  double residual = rank.rank() == 3 ? 0.1 : 1.0;
  const auto direction = torch::ones({6});
  while (residual > 0.05) {
    rank.world().all_reduce(direction).wait();
    residual /= 2;
  }
  const auto all = torch::empty({4, 6});
  rank.world().all_gather(all, direction).wait();  // verdict: rank 3 here: mismatch
}

// Text is made token by token, and the tokens of all ranks are gathered. Rank 1's sentence is longer than the others'.
LOCKSTEP_FAULT(loops_until_the_sentence_ends, 3) {
  const int length = rank.rank() == 1 ? 7 : 5;
  const auto tokens = torch::empty({3}, torch::kLong);
  for (int position = 0; position < length; ++position) {
    rank.world().all_gather(tokens, torch::full({1}, position)).wait();  // verdict: rank 1 here: mismatch
  }
  rank.world().barrier().wait();
}

// Gradients are averaged at the end of each window of micro-batches. Rank 2's windows are twice as long.
LOCKSTEP_FAULT(loops_with_a_longer_window, 3) {
  const auto gradient = torch::zeros({8});
  const int window = rank.rank() == 2 ? 4 : 2;
  for (int micro_batch = 1; micro_batch <= 8; ++micro_batch) {
    gradient.add_(1);
    if (micro_batch % window != 0) continue;
    rank.world().all_reduce(gradient, {.op = ReduceOp::avg}).wait();  // verdict: rank 2 here: deadlock
    gradient.zero_();
  }
}

struct TenSamples {
  std::size_t size() const { return 10; }
  torch::Tensor get(std::size_t index) const { return torch::full({4}, static_cast<double>(index)); }
};

// Ten samples in batches of four: three batches, or two where the short one is dropped, as on rank 0.
LOCKSTEP_FAULT(loops_with_drop_last, 3) {
  const data::DataLoader loader(TenSamples(), {.batch_size = 4, .drop_last = rank.rank() == 0});
  for (const Value& batch : loader) {
    const auto gradient = batch.tensor().mean(0);
    rank.world().all_reduce(gradient).wait();
  }
  const auto num_batches = torch::full({1}, loader.length(), torch::kLong);
  rank.world().all_reduce(num_batches).wait();  // verdict: rank 0 here: mismatch
}

// The weight of a layer is spread over the ranks, and gathered whenever the layer runs. Rank 1 has three boxes in its
// image and runs it three times, the others have one.
LOCKSTEP_FAULT(loops_over_a_sharded_layer, 3) {
  const auto shard = torch::ones({2, 4});
  const auto forward = [&](const torch::Tensor& box) {
    auto weight = torch::empty({6, 4});
    rank.world().all_gather(weight, shard).wait();  // verdict: rank 1 here: mismatch
    return torch::linear(box, weight);
  };
  const int num_boxes = rank.rank() == 1 ? 3 : 1;
  for (int box = 0; box < num_boxes; ++box) static_cast<void>(forward(torch::ones({1, 4})));
  const auto gradient = torch::empty({2, 4});
  rank.world().reduce_scatter(gradient, torch::ones({6, 4})).wait();
}

}  // namespace
}  // namespace lockstep::sim::gallery
