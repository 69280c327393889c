#pragma once

#include <tuple>

#include "lockstep/config/field.h"

namespace lockstep::config {

/// How the loss is scaled under fp16.
///
/// @clause AMP-007, KW-012
/// @source Accelerate, GradScalerKwargs; PyTorch, torch.amp.GradScaler
struct GradScalerKwargs {
  double init_scale = 65536.0;
  double growth_factor = 2.0;   ///< the scale grows by it after growth_interval good iterations in a row; above 1
  double backoff_factor = 0.5;  ///< and shrinks by it after an overflow; below 1
  int growth_interval = 2000;
  bool enabled = true;  ///< false: losses and gradients are left alone, and every step is made

  bool operator==(const GradScalerKwargs&) const = default;
};

constexpr auto fields_of(const GradScalerKwargs&) {
  return std::tuple{
      Field{"init_scale", &GradScalerKwargs::init_scale}, Field{"growth_factor", &GradScalerKwargs::growth_factor},
      Field{"backoff_factor", &GradScalerKwargs::backoff_factor},
      Field{"growth_interval", &GradScalerKwargs::growth_interval}, Field{"enabled", &GradScalerKwargs::enabled}};
}

}  // namespace lockstep::config
