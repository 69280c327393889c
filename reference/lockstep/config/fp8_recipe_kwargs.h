#pragma once

#include <optional>
#include <string>
#include <tuple>

#include "lockstep/config/field.h"

namespace lockstep::config {

/// Which of a linear layer's three products stay out of float8.
struct OverrideLinearPrecision {
  bool fprop = false;  ///< the output
  bool dgrad = false;  ///< the gradient of the input
  bool wgrad = false;  ///< the gradient of the weight

  bool operator==(const OverrideLinearPrecision&) const = default;
};

/// How linear layers compute in float8 under mixed precision fp8: scaled casts with delayed scaling. Words are read in
/// any case. A field that has its default is taken from its ACCELERATE_FP8_ variable where that is set.
///
/// @clause AMP-011, KW-022..024
/// @source Accelerate, FP8RecipeKwargs, which has these fields from TERecipeKwargs; Transformer Engine, DelayedScaling
struct FP8RecipeKwargs {
  std::optional<std::string> backend;     ///< "LOCKSTEP", as none; TE, MSAMP and AO are refused as not installed
  bool use_autocast_during_eval = false;  ///< float8 in evaluation mode too
  int margin = 0;                         ///< headroom: scales are smaller by 2 to that power
  int interval = 1;                       ///< training forwards of a layer from one choice of its scales to the next
  std::string fp8_format = "HYBRID";      ///< E4M3 or E5M2 everywhere; HYBRID: E4M3, and E5M2 for gradients
  int amax_history_len = 1024;            ///< largest absolute values that are remembered, one per forward or backward
  std::string amax_compute_algo = "most_recent";  ///< or "max": the one of them that the scale is chosen by
  OverrideLinearPrecision override_linear_precision;

  bool operator==(const FP8RecipeKwargs&) const = default;
};

constexpr auto fields_of(const FP8RecipeKwargs&) {
  return std::tuple{Field{"backend", &FP8RecipeKwargs::backend},
                    Field{"use_autocast_during_eval", &FP8RecipeKwargs::use_autocast_during_eval},
                    Field{"margin", &FP8RecipeKwargs::margin},
                    Field{"interval", &FP8RecipeKwargs::interval},
                    Field{"fp8_format", &FP8RecipeKwargs::fp8_format},
                    Field{"amax_history_len", &FP8RecipeKwargs::amax_history_len},
                    Field{"amax_compute_algo", &FP8RecipeKwargs::amax_compute_algo},
                    Field{"override_linear_precision", &FP8RecipeKwargs::override_linear_precision}};
}

}  // namespace lockstep::config
