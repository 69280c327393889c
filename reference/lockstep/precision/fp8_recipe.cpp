#include "lockstep/precision/fp8_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/words.h"

namespace lockstep::precision {
namespace {

using config::FP8RecipeKwargs;

[[noreturn]] void refuse(std::string_view option, std::string expected, std::string got) {
  throw InvalidArgument({.where = fmt::format("FP8RecipeKwargs({})", option),
                         .expected = std::move(expected),
                         .got = std::move(got),
                         .fix = "Leave it out for its default."});
}

int at_least(int least, int number, std::string_view option) {
  if (number < least) refuse(option, fmt::format("at least {}", least), std::to_string(number));
  return number;
}

// Options that have their default, taken from the variables.
FP8RecipeKwargs with_variables(FP8RecipeKwargs kwargs, const state::Environment& environment) {
  const FP8RecipeKwargs standard;
  const std::string prefix = "ACCELERATE_FP8_";
  const auto take_word = [&](auto& option, const auto& otherwise, const char* name) {
    if (option == otherwise) option = environment.find(prefix + name).value_or(option);
  };
  const auto take_number = [&](int& option, int otherwise, const char* name) {
    if (option == otherwise) option = environment.number(prefix + name).value_or(option);
  };
  const auto take_flag = [&](bool& option, const char* name) { option = option || environment.flag(prefix + name); };
  if (!kwargs.backend) kwargs.backend = environment.find(prefix + "BACKEND");
  take_word(kwargs.fp8_format, standard.fp8_format, "FORMAT");
  take_word(kwargs.amax_compute_algo, standard.amax_compute_algo, "AMAX_COMPUTE_ALGO");
  take_number(kwargs.margin, standard.margin, "MARGIN");
  take_number(kwargs.interval, standard.interval, "INTERVAL");
  take_number(kwargs.amax_history_len, standard.amax_history_len, "AMAX_HISTORY_LEN");
  take_flag(kwargs.use_autocast_during_eval, "USE_AUTOCAST_DURING_EVAL");
  take_flag(kwargs.override_linear_precision.fprop, "OVERRIDE_FPROP");
  take_flag(kwargs.override_linear_precision.dgrad, "OVERRIDE_DGRAD");
  take_flag(kwargs.override_linear_precision.wgrad, "OVERRIDE_WGRAD");
  return kwargs;
}

void require_backend(const std::string& backend) {
  const auto word = lower(backend);
  if (word == "lockstep" || word == "no") return;
  if (word != "te" && word != "msamp" && word != "ao") refuse("backend", "LOCKSTEP, TE, MSAMP or AO", backend);
  throw Missing({.where = "FP8RecipeKwargs(backend)",
                 .expected = "an fp8 backend that is installed",
                 .got = fmt::format("'{}', a Python package", backend),
                 .fix = "Leave the backend unset: Lockstep computes in float8 itself."});
}

void set_dtypes(Fp8Recipe& recipe, const std::string& format) {
  const auto word = lower(format);
  if (word == "e4m3") {
    recipe.gradient_dtype = c10::kFloat8_e4m3fn;
  } else if (word == "e5m2") {
    recipe.forward_dtype = c10::kFloat8_e5m2;
  } else if (word != "hybrid") {
    refuse("fp8_format", "HYBRID, E4M3 or E5M2", format);
  }
}

AmaxAlgorithm amax_algorithm_from(const std::string& algorithm) {
  const auto word = lower(algorithm);
  if (word == "max") return AmaxAlgorithm::max;
  if (word != "most_recent") refuse("amax_compute_algo", "max or most_recent", algorithm);
  return AmaxAlgorithm::most_recent;
}

}  // namespace

Fp8Recipe fp8_recipe_of(const FP8RecipeKwargs& kwargs, const state::Environment& environment) {
  const auto given = with_variables(kwargs, environment);
  if (given.backend) require_backend(*given.backend);
  Fp8Recipe recipe{.use_autocast_during_eval = given.use_autocast_during_eval,
                   .margin = at_least(0, given.margin, "margin"),
                   .interval = at_least(1, given.interval, "interval"),
                   .amax_history_len = at_least(1, given.amax_history_len, "amax_history_len"),
                   .amax_algorithm = amax_algorithm_from(given.amax_compute_algo),
                   .override_linear_precision = given.override_linear_precision};
  set_dtypes(recipe, given.fp8_format);
  return recipe;
}

}  // namespace lockstep::precision
