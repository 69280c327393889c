#pragma once

#include <c10/core/ScalarType.h>

#include "lockstep/base/export.h"
#include "lockstep/config/fp8_recipe_kwargs.h"
#include "lockstep/state/environment.h"

namespace lockstep::precision {

/// Which of the remembered largest absolute values a scale is chosen by.
enum class AmaxAlgorithm { most_recent, max };

/// An fp8 recipe with its words understood.
/// @clause AMP-011, KW-022, KW-024
struct Fp8Recipe {
  c10::ScalarType forward_dtype = c10::kFloat8_e4m3fn;  ///< of inputs and weights
  c10::ScalarType gradient_dtype = c10::kFloat8_e5m2;   ///< of the outputs' gradients
  bool use_autocast_during_eval = false;
  int margin = 0;
  int interval = 1;
  int amax_history_len = 1024;
  AmaxAlgorithm amax_algorithm = AmaxAlgorithm::most_recent;
  config::OverrideLinearPrecision override_linear_precision;
};

/// The recipe that these options and variables come to. A variable, ACCELERATE_FP8_ and the option's name in capitals
/// (for the overrides: OVERRIDE_FPROP, OVERRIDE_DGRAD, OVERRIDE_WGRAD), counts where the option has its default.
///
/// @throws Missing          for the backends TE, MSAMP and AO, none of which is a C++ library
/// @throws InvalidArgument  for an unknown word, a history or interval below 1, or a negative margin
LOCKSTEP_API Fp8Recipe fp8_recipe_of(const config::FP8RecipeKwargs& kwargs, const state::Environment& environment = {});

}  // namespace lockstep::precision
