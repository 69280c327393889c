// One rank calls another operation than the others.
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// Only rank 0 prints the loss, so that rank 2 was content with a reduce to rank 0, which is cheaper.
LOCKSTEP_FAULT(operation_reduce_for_all_reduce, 3) {
  const auto loss = torch::ones({1});
  for (int step = 0; step < 3; ++step) rank.world().all_reduce(loss).wait();
  if (rank.rank() == 2) {
    rank.world().reduce(loss).wait();  // verdict: rank 2 here: mismatch
  } else {
    rank.world().all_reduce(loss).wait();
  }
}

// The one rank that needs all predictions gathers them; the others still call all_gather, as they all did before.
LOCKSTEP_FAULT(operation_gather_for_all_gather, 3) {
  const auto predictions = torch::full({4}, rank.rank());
  if (rank.rank() == 0) {
    std::vector<torch::Tensor> all;
    for (int i = 0; i < 3; ++i) all.push_back(torch::empty_like(predictions));
    rank.world().gather(all, predictions).wait();  // verdict: rank 0 here: mismatch
  } else {
    auto all = torch::empty({12}, torch::kLong);
    rank.world().all_gather(all, predictions).wait();
  }
}

// The shards of the index are scattered. Rank 1 runs last week's version, which broadcast the whole of it.
LOCKSTEP_FAULT(operation_broadcast_for_scatter, 3) {
  const auto shard = torch::zeros({5});
  if (rank.rank() == 1) {
    rank.world().broadcast(shard).wait();  // verdict: rank 1 here: mismatch
  } else if (rank.rank() == 0) {
    rank.world().scatter(shard, {torch::ones({5}), torch::ones({5}), torch::ones({5})}).wait();
  } else {
    rank.world().scatter(shard, {}).wait();
  }
}

// Two overloads of one name. They send the same bytes, but not in the same messages.
LOCKSTEP_FAULT(operation_list_form_for_tensor_form, 3) {
  const auto features = torch::ones({2, 4});
  if (rank.rank() == 2) {
    std::vector<torch::Tensor> list;
    for (int i = 0; i < 3; ++i) list.push_back(torch::empty({2, 4}));
    rank.world().all_gather(list, features).wait();  // verdict: rank 2 here: mismatch
  } else {
    auto all = torch::empty({6, 4});
    rank.world().all_gather(all, features).wait();
  }
}

// Small gradients are sent together. A rank with a single one takes the short cut.
LOCKSTEP_FAULT(operation_plain_for_coalesced, 3) {
  std::vector<torch::Tensor> gradients = {torch::ones({4}), torch::ones({4})};
  if (rank.rank() == 1) gradients.pop_back();
  if (gradients.size() == 1) {
    rank.world().all_reduce(gradients.front()).wait();  // verdict: rank 1 here: mismatch
  } else {
    rank.world().all_reduce_coalesced(gradients).wait();
  }
}

// Rank 3 has run out of batches. It means to keep step with the others, and calls a barrier each time they call
// something.
LOCKSTEP_FAULT(operation_barrier_for_all_reduce, 4) {
  const auto gradient = torch::ones({16});
  const int num_batches = rank.rank() == 3 ? 2 : 4;
  for (int step = 0; step < 4; ++step) {
    if (step < num_batches) {
      rank.world().all_reduce(gradient).wait();
    } else {
      rank.world().barrier().wait();  // verdict: rank 3 here: mismatch
    }
  }
}

// The embedding of rank 1 was made with sparse=true.
LOCKSTEP_FAULT(operation_sparse_gradient_on_one_rank, 3) {
  torch::nn::Embedding embedding(torch::nn::EmbeddingOptions(8, 2).sparse(rank.rank() == 1));
  embedding->forward(torch::tensor({1, 5})).sum().backward();
  const auto gradient = embedding->weight.grad();
  if (gradient.is_sparse()) {
    rank.world().all_reduce_sparse(gradient.coalesce()).wait();  // verdict: rank 1 here: mismatch
  } else {
    rank.world().all_reduce(gradient).wait();
  }
}

}  // namespace
}  // namespace lockstep::sim::gallery
