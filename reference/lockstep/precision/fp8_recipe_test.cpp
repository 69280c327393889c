#include "lockstep/precision/fp8_recipe.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::precision {
namespace {

using config::FP8RecipeKwargs;
using state::Environment;

TEST(KW_022, DefaultsAreHybridWithoutHeadroom) {
  const auto recipe = fp8_recipe_of({});
  EXPECT_EQ(recipe.forward_dtype, c10::kFloat8_e4m3fn);
  EXPECT_EQ(recipe.gradient_dtype, c10::kFloat8_e5m2);
  EXPECT_FALSE(recipe.use_autocast_during_eval);
  EXPECT_EQ(recipe.margin, 0);
  EXPECT_EQ(recipe.interval, 1);
  EXPECT_EQ(recipe.amax_history_len, 1024);
  EXPECT_EQ(recipe.amax_algorithm, AmaxAlgorithm::most_recent);
  EXPECT_EQ(recipe.override_linear_precision, config::OverrideLinearPrecision{});
}

TEST(KW_022, WordsAreReadInAnyCase) {
  EXPECT_EQ(fp8_recipe_of({.fp8_format = "e4m3"}).gradient_dtype, c10::kFloat8_e4m3fn);
  EXPECT_EQ(fp8_recipe_of({.fp8_format = "E5m2"}).forward_dtype, c10::kFloat8_e5m2);
  EXPECT_EQ(fp8_recipe_of({.amax_compute_algo = "MAX"}).amax_algorithm, AmaxAlgorithm::max);
}

TEST(KW_022, BadValuesAreRefused) {
  EXPECT_THROW(fp8_recipe_of({.fp8_format = "E3M4"}), InvalidArgument);
  EXPECT_THROW(fp8_recipe_of({.amax_compute_algo = "mean"}), InvalidArgument);
  EXPECT_THROW(fp8_recipe_of({.amax_history_len = 0}), InvalidArgument);
  EXPECT_THROW(fp8_recipe_of({.interval = 0}), InvalidArgument);
  EXPECT_THROW(fp8_recipe_of({.margin = -1}), InvalidArgument);
}

TEST(KW_022, WhatIsUnsetComesFromTheVariables) {
  const Environment environment{{"ACCELERATE_FP8_MARGIN", "2"},
                                {"ACCELERATE_FP8_INTERVAL", "3"},
                                {"ACCELERATE_FP8_FORMAT", "E4M3"},
                                {"ACCELERATE_FP8_AMAX_HISTORY_LEN", "16"},
                                {"ACCELERATE_FP8_AMAX_COMPUTE_ALGO", "max"},
                                {"ACCELERATE_FP8_USE_AUTOCAST_DURING_EVAL", "true"},
                                {"ACCELERATE_FP8_OVERRIDE_DGRAD", "1"}};
  const auto recipe = fp8_recipe_of({.interval = 5}, environment);
  EXPECT_EQ(recipe.margin, 2);
  EXPECT_EQ(recipe.interval, 5) << "given";
  EXPECT_EQ(recipe.gradient_dtype, c10::kFloat8_e4m3fn);
  EXPECT_EQ(recipe.amax_history_len, 16);
  EXPECT_EQ(recipe.amax_algorithm, AmaxAlgorithm::max);
  EXPECT_TRUE(recipe.use_autocast_during_eval);
  EXPECT_EQ(recipe.override_linear_precision, (config::OverrideLinearPrecision{.dgrad = true}));
}

TEST(KW_024, OtherBackendsAreNotInstalled) {
  for (const char* backend : {"te", "MSAMP", "ao"}) {
    EXPECT_THROW(fp8_recipe_of({.backend = backend}), Missing) << backend;
    EXPECT_THROW(fp8_recipe_of({}, {{"ACCELERATE_FP8_BACKEND", backend}}), Missing) << backend;
  }
  EXPECT_THROW(fp8_recipe_of({.backend = "abacus"}), InvalidArgument);
  EXPECT_NO_THROW(fp8_recipe_of({.backend = "LOCKSTEP"}));
}

}  // namespace
}  // namespace lockstep::precision
