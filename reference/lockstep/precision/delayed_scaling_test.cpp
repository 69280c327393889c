#include "lockstep/precision/delayed_scaling.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lockstep/precision/float8_model_test_support.h"

namespace lockstep::precision {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The scales that tensors with these largest absolute values are cast by, in turn.
std::vector<float> scales_for(const std::vector<double>& amaxes, const Fp8Recipe& recipe,
                              at::ScalarType float8 = at::kFloat8_e4m3fn) {
  DelayedScaling scaling(float8, recipe);
  std::vector<float> scales;
  for (const double amax : amaxes) scales.push_back(scaling(at::full({2}, -amax)).scale);
  return scales;
}

TEST(AMP_011, CastsEqualAFloat64ModelBitForBit) {
  at::manual_seed(3);
  const auto normal = at::randn({4096});
  for (const auto& model : {test::kE4m3, test::kE5m2}) {
    for (const float spread : {1e-4F, 1.0F, 300.0F}) {
      const auto tensor = normal * spread;
      for (const float scale : {1.0F, 0.37F, 224.0F, model.scale_of(tensor)}) {
        const auto cast = quantize(tensor, scale, model.dtype);
        EXPECT_EQ(cast.values.scalar_type(), model.dtype);
        EXPECT_EQ(cast.scale, scale);
        EXPECT_TRUE(at::equal(cast.values.to(at::kDouble), model.quantize(tensor, scale)))
            << model.dtype << " " << spread << " " << scale;
      }
    }
  }
}

TEST(AMP_011, CastsSaturate) {
  const auto tensor = at::tensor({500.0F, -1e6F, kInfinity, -kInfinity});
  const auto expect_values = [&](at::ScalarType float8, const std::vector<float>& expected) {
    EXPECT_TRUE(at::equal(quantize(tensor, 1, float8).values.to(at::kFloat), at::tensor(expected))) << float8;
  };
  expect_values(at::kFloat8_e4m3fn, {448, -448, 448, -448});
  expect_values(at::kFloat8_e5m2, {512, -57344, 57344, -57344});
  EXPECT_TRUE(quantize(at::tensor({std::nanf("")}), 1, at::kFloat8_e4m3fn).values.to(at::kFloat).isnan().item<bool>());
}

TEST(AMP_011, TheScaleFollowsTheCallBefore) {
  EXPECT_EQ(scales_for({2, 4, 1, 1}, {}), (std::vector<float>{224, 224, 112, 448}));
  EXPECT_EQ(scales_for({2, 4}, {}, at::kFloat8_e5m2), (std::vector<float>{28672, 28672}));
}

TEST(AMP_011, MaxTakesTheLargestOfTheHistory) {
  const Fp8Recipe recipe{.amax_history_len = 2, .amax_algorithm = AmaxAlgorithm::max};
  EXPECT_EQ(scales_for({2, 4, 1, 1, 1}, recipe), (std::vector<float>{224, 224, 112, 112, 448}));
}

TEST(AMP_011, MarginLeavesHeadroom) { EXPECT_EQ(scales_for({2, 2}, {.margin = 3}), (std::vector<float>{28, 28})); }

TEST(AMP_011, IntervalKeepsAScaleForSeveralCalls) {
  EXPECT_EQ(scales_for({2, 4, 1, 7, 1}, {.interval = 2}), (std::vector<float>{224, 224, 112, 112, 64}));
}

TEST(DelayedScaling, AmaxesThatGiveNoScaleChangeNothing) {
  EXPECT_EQ(scales_for({2, kInfinity, 2, 0, 2, 2}, {}), (std::vector<float>{224, 224, 224, 224, 224, 224}));
  EXPECT_EQ(scales_for({0, 2, 2}, {}), (std::vector<float>{1, 1, 224}));
  DelayedScaling scaling(at::kFloat8_e4m3fn, {});
  EXPECT_EQ(scaling(at::empty({0, 3})).values.numel(), 0);
}

TEST(DelayedScaling, ACastWithoutTraceRemembersNothing) {
  DelayedScaling scaling(at::kFloat8_e4m3fn, {});
  EXPECT_EQ(scaling.without_trace(at::full({2}, 4.0)).scale, 112) << "by its own largest value, for want of others";
  EXPECT_TRUE(scaling.history().empty());
  scaling(at::full({2}, 2.0));
  EXPECT_EQ(scaling.without_trace(at::full({2}, 4.0)).scale, 224);
  EXPECT_EQ(scaling.history().size(), 1U);
}

}  // namespace
}  // namespace lockstep::precision
