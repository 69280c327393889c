#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace torch::autograd {
struct Node;
}
namespace torch::nn {
class Module;
}

namespace lockstep::parallel {

/// A parameter that requires a gradient, and whether it has got one.
struct TrainedParameter {
  std::string name;
  at::Tensor tensor;
  /// Held because it lives only as long as somebody holds it, and its hooks with it.
  std::shared_ptr<torch::autograd::Node> accumulator;
  /// Set when a backward has accumulated its gradient; whoever waits for that resets it before.
  std::shared_ptr<std::atomic<bool>> ready = std::make_shared<std::atomic<bool>>(false);
};

/// In registration order. A tied parameter is one, under the first of its names.
std::vector<TrainedParameter> trained_parameters(const torch::nn::Module& model);

std::vector<at::Tensor> tensors_of(const std::vector<TrainedParameter>& parameters);

}  // namespace lockstep::parallel
