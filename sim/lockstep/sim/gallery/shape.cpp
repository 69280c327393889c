// One rank's tensor has another shape. Where the number of elements happens to agree, nothing but a check would notice.
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// 47 samples on 3 ranks in batches of 8, and drop_last is off: rank 2's last batch has 7.
LOCKSTEP_FAULT(shape_short_last_batch, 3) {
  const auto begin = rank.rank() * 16;
  const auto end = std::min(begin + 16, 47);
  for (int first = begin; first < end; first += 8) {
    const auto logits = torch::ones({std::min(8, end - first), 2});
    const auto all = torch::empty({rank.world_size() * logits.size(0), 2});
    rank.world().all_gather(all, logits).wait();  // verdict: rank 2 here: mismatch
  }
}

// Rank 1 loaded a checkpoint of another framework, where the weight of a linear layer is [in, out].
LOCKSTEP_FAULT(shape_transposed_weight, 3) {
  auto weight = torch::ones({6, 4});
  if (rank.rank() == 1) weight = weight.t().contiguous();
  rank.world().broadcast(weight).wait();  // verdict: rank 1 here: mismatch
}

// One rank keeps its loss in a tensor of one element, the others keep theirs in one without dimensions.
LOCKSTEP_FAULT(shape_scalar_and_one_element, 3) {
  auto loss = torch::zeros({});
  for (int step = 0; step < 3; ++step) {
    loss = torch::ones({4}).mean();
    if (rank.rank() == 2 && step == 2) loss = loss.reshape({1});
    rank.world().all_reduce(loss, {.op = ReduceOp::avg}).wait();  // verdict: rank 2 here: mismatch
  }
}

// Each rank counts its labels, and takes the largest that it has seen for the last class. Rank 1 has seen no 4.
LOCKSTEP_FAULT(shape_classes_seen_here, 3) {
  const auto labels =
      rank.rank() == 1 ? torch::tensor({0, 3, 3}, torch::kLong) : torch::tensor({4, 0, 2}, torch::kLong);
  const auto counts = torch::bincount(labels);
  rank.world().all_reduce(counts).wait();  // verdict: rank 1 here: mismatch
}

// squeeze() was to drop the channel. Where the batch is a single image it drops the batch as well, and the first image
// of rank 0 is its first pixel.
LOCKSTEP_FAULT(shape_batch_squeezed_away, 3) {
  const int batch_size = rank.rank() == 0 ? 1 : 2;
  const auto images = torch::ones({batch_size, 1, 4}).squeeze();
  const auto mean = images[0].clone();
  rank.world().all_reduce(mean, {.op = ReduceOp::avg}).wait();  // verdict: rank 0 here: mismatch
}

// Rank 3 found a newer tokenizer on its disk, with two more words.
LOCKSTEP_FAULT(shape_vocabulary_has_grown, 4) {
  const int num_words = rank.rank() == 3 ? 34 : 32;
  torch::nn::Embedding embedding(num_words, 4);
  embedding->forward(torch::tensor({1, 2})).sum().backward();
  rank.world().all_reduce(embedding->weight.grad()).wait();  // verdict: rank 3 here: mismatch
}

// Sentences were padded to the longest of each rank's own batch. All three ranks differ, and none more than the others.
LOCKSTEP_FAULT(shape_padded_to_the_own_longest, 3) {
  const auto tokens = torch::zeros({2, 5 + rank.rank()}, torch::kLong);
  const auto all = torch::empty({6, tokens.size(1)}, torch::kLong);
  rank.world().all_gather(all, tokens).wait();  // verdict: rank 1 here: mismatch // symmetric
}

// Rank 2 tracks one statistic more, and sends it along.
LOCKSTEP_FAULT(shape_one_more_in_the_list, 3) {
  std::vector<torch::Tensor> statistics = {torch::ones({3}), torch::ones({3})};
  if (rank.rank() == 2) statistics.push_back(torch::ones({1}));
  rank.world().all_reduce_coalesced(statistics).wait();  // verdict: rank 2 here: mismatch
}

}  // namespace
}  // namespace lockstep::sim::gallery
