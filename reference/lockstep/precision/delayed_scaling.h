#pragma once

#include <ATen/core/Tensor.h>

#include <deque>

#include "lockstep/base/export.h"
#include "lockstep/precision/fp8_recipe.h"

namespace lockstep::precision {

/// The largest number of a float8 type: 448 (e4m3fn), 57344 (e5m2).
LOCKSTEP_API float largest_of(c10::ScalarType float8);

/// A tensor in float8, which stands for values / scale.
struct ScaledTensor {
  at::Tensor values;  ///< float8
  float scale = 1;
};

/// tensor * scale, clamped to the type's range, rounded to the nearest float8 number. Infinities become the largest
/// number (LibTorch's own cast gives NaN or infinity for whatever is too large); NaN stays.
/// @param tensor  floating point
LOCKSTEP_API ScaledTensor quantize(const at::Tensor& tensor, float scale, c10::ScalarType float8);

/// Chooses the scale of one tensor of a layer, call by call: the largest absolute value is brought to the largest
/// number of the float8 type, 2^margin below it. *Delayed*: a call uses what earlier calls saw, so that the cast need
/// not wait for a pass over the tensor; only the first call looks at its own.
///
/// amaxes 2, 4, 1 of an e4m3fn tensor, most_recent: scales 224, 224, 112; the next is 448.
///
/// Amaxes that are not finite are not remembered, and an amax of 0 leaves the scale as it is.
///
/// @clause AMP-011
/// @source Micikevicius et al. 2022, FP8 formats for deep learning, section 3; Transformer Engine, DelayedScaling
class LOCKSTEP_API DelayedScaling {
 public:
  DelayedScaling(c10::ScalarType float8, const Fp8Recipe& recipe) : float8_(float8), recipe_(recipe) {}

  /// Casts, and remembers the tensor's largest absolute value for later calls.
  ScaledTensor operator()(const at::Tensor& tensor);
  /// Casts and remembers nothing: evaluation changes no training.
  [[nodiscard]] ScaledTensor without_trace(const at::Tensor& tensor) const;

  [[nodiscard]] float scale() const noexcept { return scale_; }
  [[nodiscard]] const std::deque<float>& history() const noexcept { return history_; }  ///< newest first

 private:
  [[nodiscard]] float scale_for(float amax) const;
  void remember(float amax);
  [[nodiscard]] float chosen_amax() const;

  c10::ScalarType float8_;
  Fp8Recipe recipe_;
  float scale_ = 1;
  int calls_since_choice_ = 0;
  std::deque<float> history_;
};

}  // namespace lockstep::precision
