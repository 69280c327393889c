#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/conformance/serve/arguments.h"

namespace lockstep::conformance {

/// A model of the protocol: one tensor in, one tensor out.
class Model : public torch::nn::Module {
 public:
  /// @param branch  which part of a model with several takes part; of no effect for the others
  virtual at::Tensor forward(const at::Tensor& input, std::int64_t branch) = 0;
};

struct ModelCase {
  std::shared_ptr<Model> model;
  bool prepare;  ///< false: it is used as it is
};

/// Reads a MODEL: its kind, and the initial value of every parameter.
/// @throws Unsupported  for a kind that is unknown, or a parameter that is missing
ModelCase model_from(Arguments& arguments);

/// {name: TENSOR} of a model's parameters; of their gradients, null where there is none.
Json parameters_of(const torch::nn::Module& model);
Json gradients_of(const torch::nn::Module& model);

}  // namespace lockstep::conformance
