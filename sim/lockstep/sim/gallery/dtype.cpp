// One rank's tensor has another dtype. Equally large ones are read as what they are not, without an error.
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// A running sum is kept in double precision, as it should; rank 1 forgot to go back before the call.
LOCKSTEP_FAULT(dtype_double_on_one_rank, 3) {
  const auto losses = torch::ones({8}, rank.rank() == 1 ? torch::kDouble : torch::kFloat);
  const auto total = losses.sum();
  rank.world().all_reduce(total).wait();  // verdict: rank 1 here: mismatch
}

// int32 and float32 have four bytes each: rank 2's counts arrive as numbers near zero.
LOCKSTEP_FAULT(dtype_counts_as_int32, 3) {
  auto num_right = torch::full({2}, 12.0F);
  if (rank.rank() == 2) num_right = num_right.to(torch::kInt);
  rank.world().all_reduce(num_right).wait();  // verdict: rank 2 here: mismatch
}

// Rank 0 evaluates in half precision, because it shares its device with something else.
LOCKSTEP_FAULT(dtype_half_on_one_rank, 3) {
  torch::nn::Linear head(4, 2);
  auto logits = head->forward(torch::ones({3, 4})).detach();
  if (rank.rank() == 0) logits = logits.to(torch::kHalf);
  const auto all = torch::empty({9, 2}, logits.options());
  rank.world().all_gather(all, logits).wait();  // verdict: rank 0 here: mismatch
}

// A mask is Boolean where it comes from a comparison, and bytes where it was read from a file.
LOCKSTEP_FAULT(dtype_mask_of_bytes, 3) {
  const auto tokens = torch::tensor({3, 0, 7, 0}, torch::kLong);
  auto mask = tokens.ne(0);
  if (rank.rank() == 1) mask = mask.to(torch::kByte);
  rank.world().broadcast(mask).wait();  // verdict: rank 1 here: mismatch
}

// Rank 2 had no positive sample. For "none" it makes zeros of the default dtype, where the others count in int64.
LOCKSTEP_FAULT(dtype_of_nothing, 3) {
  const auto labels = rank.rank() == 2 ? torch::tensor({0, 0}, torch::kLong) : torch::tensor({0, 1}, torch::kLong);
  const auto positives = labels.masked_select(labels.gt(0));
  const auto count = positives.numel() > 0 ? positives.sum().reshape({1}) : torch::zeros({1});
  rank.world().all_reduce(count).wait();  // verdict: rank 2 here: mismatch
}

// Rank 3 resumed from a checkpoint that was saved in bfloat16.
LOCKSTEP_FAULT(dtype_of_a_resumed_checkpoint, 4) {
  torch::nn::Linear layer(4, 4);
  if (rank.rank() == 3) layer->to(torch::kBFloat16);
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : layer->parameters()) {
    rank.world().broadcast(parameter).wait();  // verdict: rank 3 here: mismatch
  }
}

}  // namespace
}  // namespace lockstep::sim::gallery
