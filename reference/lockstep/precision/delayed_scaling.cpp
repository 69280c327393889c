#include "lockstep/precision/delayed_scaling.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/max.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::precision {
namespace {

float amax_of(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0.0F : tensor.detach().abs().max().item<float>();
}

}  // namespace

float largest_of(c10::ScalarType float8) {
  LOCKSTEP_ASSERT(float8 == c10::kFloat8_e4m3fn || float8 == c10::kFloat8_e5m2);
  return float8 == c10::kFloat8_e4m3fn ? 448.0F : 57344.0F;
}

ScaledTensor quantize(const at::Tensor& tensor, float scale, c10::ScalarType float8) {
  const double largest = largest_of(float8);
  return {.values = tensor.detach().to(at::kFloat).mul(scale).clamp(-largest, largest).to(float8), .scale = scale};
}

// The scale that is in force stays where the amax gives none: nothing was seen, or 1 / amax is beyond float32.
float DelayedScaling::scale_for(float amax) const {
  const float scale = std::ldexp(largest_of(float8_) / amax, -recipe_.margin);
  return std::isfinite(scale) && scale > 0 ? scale : scale_;
}

void DelayedScaling::remember(float amax) {
  if (!std::isfinite(amax)) return;
  history_.push_front(amax);
  if (history_.size() > static_cast<std::size_t>(recipe_.amax_history_len)) history_.pop_back();
}

float DelayedScaling::chosen_amax() const {
  return recipe_.amax_algorithm == AmaxAlgorithm::most_recent ? history_.front() : *std::ranges::max_element(history_);
}

ScaledTensor DelayedScaling::operator()(const at::Tensor& tensor) {
  const float amax = amax_of(tensor);
  if (history_.empty()) {
    scale_ = scale_for(amax);
  } else if (calls_since_choice_ >= recipe_.interval) {
    scale_ = scale_for(chosen_amax());
    calls_since_choice_ = 0;
  }
  ++calls_since_choice_;
  remember(amax);
  return quantize(tensor, scale_, float8_);
}

ScaledTensor DelayedScaling::without_trace(const at::Tensor& tensor) const {
  if (history_.empty()) return quantize(tensor, scale_for(amax_of(tensor)), float8_);
  return quantize(tensor, scale_, float8_);
}

}  // namespace lockstep::precision
