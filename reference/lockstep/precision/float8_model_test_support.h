#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>

namespace lockstep::precision::test {

/// A float8 type in numbers, and rounding to it in float64, independent of LibTorch's casts.
struct Float8Model {
  at::ScalarType dtype;
  int mantissa_bits;
  int least_exponent;  ///< of a normal number
  double largest;

  [[nodiscard]] double round(double value) const {
    const double clamped = std::clamp(value, -largest, largest);
    if (clamped == 0) return clamped;
    const int exponent = std::max(std::ilogb(clamped), least_exponent);
    const double quantum = std::ldexp(1.0, exponent - mantissa_bits);
    return std::nearbyint(clamped / quantum) * quantum;  // to nearest, ties to even
  }

  /// Each element of a float32 tensor, scaled in float32 and rounded. @return float64
  [[nodiscard]] at::Tensor quantize(const at::Tensor& tensor, float scale) const {
    auto result = tensor.detach().to(at::kFloat).mul(scale).to(at::kDouble).contiguous().clone();
    auto* const elements = result.mutable_data_ptr<double>();
    std::transform(elements, elements + result.numel(), elements, [this](double value) { return round(value); });
    return result;
  }

  /// The scale that brings a tensor's largest absolute value to the type's.
  [[nodiscard]] float scale_of(const at::Tensor& tensor) const {
    return static_cast<float>(largest) / tensor.detach().abs().max().item<float>();
  }
};

inline const Float8Model kE4m3{.dtype = at::kFloat8_e4m3fn, .mantissa_bits = 3, .least_exponent = -6, .largest = 448};
inline const Float8Model kE5m2{.dtype = at::kFloat8_e5m2, .mantissa_bits = 2, .least_exponent = -14, .largest = 57344};

}  // namespace lockstep::precision::test
