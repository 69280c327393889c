#pragma once

#include <ATen/Functions.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/comm/operations.h"
#include "lockstep/config/distributed_data_parallel_kwargs.h"
#include "lockstep/modules/prepared.h"
#include "lockstep/parallel/ddp/distributed_data_parallel.h"
#include "lockstep/state/partial_state.h"

// What the tests of this folder share: small models, and a model with its engine.
namespace lockstep::parallel::test {

using config::DistributedDataParallelKwargs;

inline comm::ProcessGroup world() { return state::PartialState().world_group(); }
inline accounting::Account& account() { return *state::RankContext::current().account(); }

/// One parameter, 1 at first: y = w x.
struct Scale : torch::nn::Module {
  Scale() { w = register_parameter("w", at::ones({1})); }
  at::Tensor forward(const at::Tensor& x) { return w * x; }
  at::Tensor w;
};

enum class Branch { a, b, both };

/// linear(1,1) twice, without biases so that a gradient is one number.
struct Branches : torch::nn::Module {
  Branches() {
    const auto options = torch::nn::LinearOptions(1, 1).bias(false);
    a = register_module("a", torch::nn::Linear(options));
    b = register_module("b", torch::nn::Linear(options));
  }
  at::Tensor forward(const at::Tensor& x, Branch branch) {
    if (branch == Branch::both) return a->forward(x) + b->forward(x);
    return (branch == Branch::a ? a : b)->forward(x);
  }
  torch::nn::Linear a{nullptr};
  torch::nn::Linear b{nullptr};
};

/// Parameters of the given sizes, named p0, p1, ...; `use_order` says in which order forward uses them.
struct Rows : torch::nn::Module {
  explicit Rows(const std::vector<std::int64_t>& sizes, std::vector<std::size_t> use_order = {})
      : order(std::move(use_order)) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      rows.push_back(register_parameter("p" + std::to_string(i), at::full({sizes[i]}, 0.5 + static_cast<double>(i))));
      if (order.size() < sizes.size()) order.push_back(i);
    }
  }
  at::Tensor forward(const at::Tensor& x) {
    auto y = x;
    for (const auto i : order) y = y * rows[i].mean() + (rows[i] * rows[i]).mean() * x;
    return y;
  }
  std::vector<at::Tensor> rows;
  std::vector<std::size_t> order;
};

/// A model on this rank and the engine that keeps it equal to the others'.
template <typename Net>
struct Wrapped {
  explicit Wrapped(std::shared_ptr<Net> module, const DistributedDataParallelKwargs& kwargs = {})
      : net(std::move(module)),
        engine(std::make_shared<DistributedDataParallel>(net, world(), kwargs)),
        model(net, engine, state::RankContext::current().account()) {}

  void backward(const at::Tensor& loss) const {
    loss.backward();
    engine->after_backward();
  }
  void forget_gradients() const {
    for (auto& parameter : net->parameters()) parameter.mutable_grad().reset();
  }

  std::shared_ptr<Net> net;
  std::shared_ptr<DistributedDataParallel> engine;
  modules::Prepared<Net> model;
};

/// Copies of all gradients.
inline std::vector<at::Tensor> gradients_of(const torch::nn::Module& net) {
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : net.parameters()) {
    gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
  }
  return gradients;
}

/// Every parameter and buffer as one row of bytes.
inline at::Tensor bytes_of(const torch::nn::Module& net) {
  std::vector<at::Tensor> rows;
  for (const auto& list : {net.parameters(), net.buffers()}) {
    for (const auto& tensor : list) rows.push_back(tensor.detach().contiguous().reshape({-1}).view(at::kByte));
  }
  return at::cat(rows);
}

/// Whether `row` has the same bits on all ranks.
inline bool equal_on_all_ranks(const at::Tensor& row) {
  const auto flat = row.detach().contiguous().reshape({-1}).view(at::kByte);
  const auto all = comm::gather(flat, world()).tensor().view({world().size(), -1});
  return all.eq(all[0]).all().item<bool>();
}

}  // namespace lockstep::parallel::test
