// Distributed data parallel: the ranks' models, forwards or backwards differ. Calls are made by the reducer, in the
// midst of backward.
#include "lockstep/accelerator/accelerator.h"
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

/// A trunk and two heads, of which the second may be left out.
struct TwoHeadsImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x, bool with_boxes = true) {
    const auto features = torch::relu(trunk->forward(x));
    const auto loss = classes->forward(features).mean();
    return with_boxes ? loss + boxes->forward(features).mean() : loss;
  }
  torch::nn::Linear trunk = register_module("trunk", torch::nn::Linear(4, 8));
  torch::nn::Linear classes = register_module("classes", torch::nn::Linear(8, 3));
  torch::nn::Linear boxes = register_module("boxes", torch::nn::Linear(8, 4));
};
TORCH_MODULE(TwoHeads);

// Rank 1's batch has no boxes, so that the head for boxes takes no part in its loss. Its backward ends with an error;
// the others wait in theirs. Its last call was in the backward before.
LOCKSTEP_FAULT(ddp_unused_parameter, 3) {
  Accelerator accelerator({.cpu = true});
  const auto model = accelerator.prepare(TwoHeads());
  for (int step = 0; step < 5; ++step) {
    const bool has_boxes = rank.rank() != 1 || step != 3;
    const auto loss = model(torch::ones({2, 4}), has_boxes);
    accelerator.backward(loss);  // verdict: rank 1 here: rank_failed
    model->zero_grad();
  }
}

/// Two branches, of which a forward takes one.
struct BranchesImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x, bool takes_first) {
    return (takes_first ? first : second)->forward(x).mean();
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(4, 1));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(4, 1));
};
TORCH_MODULE(Branches);

// Each rank leaves out a branch, and not the same one. All backwards end with an error; until then the ranks had only
// prepared their models.
LOCKSTEP_FAULT(ddp_each_rank_takes_its_branch, 3) {
  Accelerator accelerator({.cpu = true});
  const auto model = accelerator.prepare(Branches());  // verdict: rank 1 here: rank_failed // symmetric
  const auto loss = model(torch::ones({2, 4}), rank.rank() == 1);
  accelerator.backward(loss);
}

// Gradients are averaged by hand, in the order of the parameters. On rank 1 a plug-in had registered the head before
// the trunk.
LOCKSTEP_FAULT(ddp_parameters_registered_in_another_order, 3) {
  torch::nn::Module net;
  torch::nn::Linear trunk(4, 8);
  torch::nn::Linear head(8, 2);
  net.register_module(rank.rank() == 1 ? "head" : "trunk", rank.rank() == 1 ? head : trunk);
  net.register_module(rank.rank() == 1 ? "trunk" : "head", rank.rank() == 1 ? trunk : head);
  head->forward(trunk->forward(torch::ones({2, 4}))).mean().backward();
  for (const auto& parameter : net.parameters()) {
    rank.world().all_reduce(parameter.grad(), {.op = ReduceOp::avg}).wait();  // verdict: rank 1 here: mismatch
  }
}

// Rank 2 builds one layer more. Preparing compares the models, and all ranks get the error.
LOCKSTEP_FAULT(ddp_models_differ, 3) {
  Accelerator accelerator({.cpu = true});
  torch::nn::Sequential net(torch::nn::Linear(4, 4));
  if (rank.rank() == 2) net->push_back(torch::nn::Linear(4, 4));
  const auto model = accelerator.prepare(net);  // verdict: rank 2 here: rank_failed // symmetric
  accelerator.backward(model(torch::ones({2, 4})).mean());
}

// Two micro-batches make a step, and gradients stay local in all but the last. Rank 2 was told that three make one.
LOCKSTEP_FAULT(ddp_no_sync_in_a_longer_window, 3) {
  Accelerator accelerator({.gradient_accumulation_steps = rank.rank() == 2 ? 3 : 2, .cpu = true});
  const auto model = accelerator.prepare(TwoHeads());
  for (int micro_batch = 0; micro_batch < 6; ++micro_batch) {
    const auto window = accelerator.accumulate(model);
    const auto loss = model(torch::ones({2, 4}));
    accelerator.backward(loss);  // verdict: rank 2 here: deadlock
    if (accelerator.sync_gradients()) model->zero_grad();
  }
}

/// Has running statistics, which travel from rank 0 before each forward in training.
struct NormalisedImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return layer->forward(norm->forward(x)).mean(); }
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(4));
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(4, 1));
};
TORCH_MODULE(Normalised);

// After an evaluation rank 2 forgets to set the model to training again. Its forward then asks for no statistics, and
// its gradients come while the others still send theirs.
LOCKSTEP_FAULT(ddp_left_in_evaluation, 3) {
  Accelerator accelerator({.cpu = true});
  const auto model = accelerator.prepare(Normalised());
  for (int step = 0; step < 4; ++step) {
    const auto loss = model(torch::ones({2, 4}));
    accelerator.backward(loss);  // verdict: rank 2 here: mismatch
    model->zero_grad();
    if (step == 2) {
      model->eval();
      if (rank.rank() != 2) model->train();
    }
  }
}

// One forward and backward more, for a regularisation that rank 3 alone tries out. Its gradients meet the others' loss.
LOCKSTEP_FAULT(ddp_one_backward_more, 4) {
  Accelerator accelerator({.cpu = true});
  const auto model = accelerator.prepare(TwoHeads());
  for (int step = 0; step < 4; ++step) {
    const auto loss = model(torch::ones({2, 4}));
    accelerator.backward(loss);
    if (rank.rank() == 3 && step == 2) {
      const auto penalty = model(torch::zeros({2, 4}));
      accelerator.backward(penalty);  // verdict: rank 3 here: mismatch
    }
    const auto mean = accelerator.reduce(loss, comm::Reduction::mean);
  }
}

// Generator and discriminator each have a loss. Rank 1 goes backward through them in the order of an older version.
LOCKSTEP_FAULT(ddp_two_backwards_in_another_order, 3) {
  Accelerator accelerator({.cpu = true});
  const auto [generator, discriminator] = accelerator.prepare(TwoHeads(), Normalised());
  for (int step = 0; step < 3; ++step) {
    std::vector<torch::Tensor> losses = {generator(torch::ones({2, 4})), discriminator(torch::ones({2, 4}))};
    if (rank.rank() == 1 && step == 2) std::swap(losses[0], losses[1]);
    for (const auto& loss : losses) {
      accelerator.backward(loss);  // verdict: rank 1 here: mismatch
    }
  }
}

// Rank 1 freezes its trunk, after the model was prepared: the reducer still waits for the trunk's gradients.
LOCKSTEP_FAULT(ddp_frozen_after_preparing, 3) {
  Accelerator accelerator({.cpu = true});
  const auto model = accelerator.prepare(TwoHeads());  // verdict: rank 1 here: rank_failed
  if (rank.rank() == 1) {
    for (auto& parameter : model->trunk->parameters()) parameter.set_requires_grad(false);
  }
  const auto loss = model(torch::ones({2, 4}));
  accelerator.backward(loss);
}

}  // namespace
}  // namespace lockstep::sim::gallery
