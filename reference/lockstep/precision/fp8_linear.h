#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/precision/delayed_scaling.h"

namespace torch::nn {
class Module;
}

namespace lockstep::precision {

/// What a linear layer in float8 carries from step to step.
struct Fp8Layer final : torch::CustomClassHolder {
  explicit Fp8Layer(const Fp8Recipe& recipe)
      : input(recipe.forward_dtype, recipe),
        weight(recipe.forward_dtype, recipe),
        gradient(recipe.gradient_dtype, recipe),
        override_precision(recipe.override_linear_precision) {}

  DelayedScaling input;
  DelayedScaling weight;
  DelayedScaling gradient;  ///< of the output
  config::OverrideLinearPrecision override_precision;
};
using Fp8LayerPtr = c10::intrusive_ptr<Fp8Layer>;

/// input * weight^T + bias, where each of the three products of forward and backward multiplies float8 numbers and adds
/// up in float32. Bias, and a product that the recipe takes out of float8, stay in `dtype`.
///
/// With x the input, w the weight, g the output's gradient, and q() the scaled cast:
///
///     output = q(x) q(w)^T    gradient of x = q(g) q(w)    gradient of w = q(g)^T q(x)
///
/// Backward keeps x and w as float8, a quarter of their size. Scales are remembered by calls that record a
/// gradient, and by their backwards.
///
/// @param input   [..., in], float32 or lower
/// @param weight  [out, in]
/// @param bias    [out], or undefined
/// @return [..., out], of `dtype`. Gradients have the dtypes of what they belong to
/// @clause AMP-011
/// @source Micikevicius et al. 2022, FP8 formats for deep learning, sections 3 and 4
LOCKSTEP_API at::Tensor fp8_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                                   const Fp8LayerPtr& layer, at::ScalarType dtype);

/// The linear layers of a model, known by where their weights' elements are.
class LOCKSTEP_API Fp8Layers {
 public:
  Fp8Layers(const torch::nn::Module& model, const Fp8Recipe& recipe);

  /// Null for a weight that is no linear layer's.
  [[nodiscard]] Fp8LayerPtr find(const at::Tensor& weight) const;
  [[nodiscard]] std::size_t size() const noexcept { return layers_.size(); }

 private:
  struct Entry {
    at::Tensor weight;
    Fp8LayerPtr layer;
  };
  std::vector<Entry> layers_;
};

}  // namespace lockstep::precision
