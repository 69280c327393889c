#include "lockstep/optim/clipping.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor parameter_with_gradient(const at::Tensor& gradient) {
  auto parameter = at::zeros_like(gradient).set_requires_grad(true);
  parameter.mutable_grad() = gradient;
  return parameter;
}

// Gradients .5 1 1.5 2 2.5 3 | -4 0, of which the expected numbers below are PyTorch's.
std::vector<at::Tensor> two_parameters(at::ScalarType dtype) {
  return {parameter_with_gradient((at::arange(1, 7, dtype) / 2).reshape({2, 3})),
          parameter_with_gradient(at::arange(-1, 1, dtype) * 4)};
}

struct Clipped {
  double norm_type;
  double norm;
  double first;  // gradient that was .5
  double last;   // gradient that was -4
};

// T1: rtol 1.3e-6, atol 1e-5; in float64 rtol 1e-10.
void expect_pytorchs(at::ScalarType dtype, const std::vector<Clipped>& expected, double rtol, double atol) {
  for (const auto& [norm_type, norm, first, last] : expected) {
    const auto parameters = two_parameters(dtype);
    EXPECT_NEAR(clip_grad_norm_(parameters, 1.5, norm_type), norm, atol + rtol * norm) << "norm type " << norm_type;
    EXPECT_NEAR(parameters[0].grad()[0][0].item<double>(), first, atol + rtol * first) << "norm type " << norm_type;
    EXPECT_NEAR(parameters[1].grad()[0].item<double>(), last, atol - rtol * last) << "norm type " << norm_type;
    EXPECT_EQ(parameters[1].grad()[1].item<double>(), 0.0);
    EXPECT_EQ(parameters[0].grad().scalar_type(), dtype);
  }
}

// Case C15: the norm that is reported is the one before clipping.
TEST(ACC_040, ScalesToTheMaximumAndReportsTheNormBefore) {
  const auto parameter = parameter_with_gradient(at::arange(6, 10, 2, at::kFloat));
  EXPECT_DOUBLE_EQ(clip_grad_norm_({parameter}, 1.0), 10.0);
  EXPECT_NEAR(parameter.grad()[0].item<double>(), 0.6, 1e-6);
  EXPECT_NEAR(parameter.grad()[1].item<double>(), 0.8, 1e-6);
}

TEST(ACC_040, LeavesASmallGradientAsItIs) {
  const auto parameter = parameter_with_gradient(at::arange(6, 10, 2, at::kFloat));
  EXPECT_DOUBLE_EQ(clip_grad_norm_({parameter}, 11.0), 10.0);
  EXPECT_TRUE(parameter.grad().equal(at::arange(6, 10, 2, at::kFloat)));
}

TEST(ACC_040, WithoutGradientsTheNormIsZero) {
  EXPECT_EQ(clip_grad_norm_({}, 1.0), 0.0);
  const auto without = at::zeros({2}).set_requires_grad(true);
  EXPECT_EQ(clip_grad_norm_({without}, 1.0), 0.0);
  const auto with = parameter_with_gradient(at::arange(6, 10, 2, at::kFloat));
  EXPECT_DOUBLE_EQ(clip_grad_norm_({without, with}, 1.0), 10.0);
  EXPECT_FALSE(without.grad().defined());
}

TEST(ACC_040, GivesPyTorchsNumbersInFloat) {
  expect_pytorchs(at::kFloat,
                  {{1.0, 14.5, 0.051724132150411606, -0.41379305720329285},
                   {2.0, 6.224949836730957, 0.12048288434743881, -0.9638630747795105},
                   {3.0, 4.9204068183898926, 0.15242639183998108, -1.2194111347198486},
                   {0.5, 93.30120849609375, 0.0080384816974401474, -0.064307853579521179},
                   {kInfinity, 4.0, 0.18749995529651642, -1.4999996423721313},
                   {0.0, 2.0, 0.37499982118606567, -2.9999985694885254}},
                  1.3e-6, 1e-5);
}

TEST(ACC_040, GivesPyTorchsNumbersInDouble) {
  expect_pytorchs(at::kDouble,
                  {{1.0, 14.5, 0.051724134363852807, -0.41379307491082246},
                   {2.0, 6.2249497989943663, 0.12048287998053922, -0.96386303984431376},
                   {3.0, 4.9204063603376635, 0.15242640396922971, -1.2194112317538377},
                   {kInfinity, 4.0, 0.18749995312501172, -1.4999996250000938}},
                  1e-10, 0.0);
}

TEST(ACC_040, OneNormOverGradientsOfSeveralDtypes) {
  const auto three = parameter_with_gradient(at::full({1}, 3, at::kDouble));
  const auto four = parameter_with_gradient(at::full({1}, 4, at::kFloat));
  EXPECT_DOUBLE_EQ(clip_grad_norm_({four, three}, 1.0), 5.0);
  EXPECT_NEAR(three.grad().item<double>(), 0.6, 1e-6);
  EXPECT_NEAR(four.grad().item<double>(), 0.8, 1e-6);
}

TEST(ACC_040, NonFiniteGradientsAreAnErrorOnlyIfAskedFor) {
  const auto parameter = parameter_with_gradient(at::full({2}, kInfinity));
  EXPECT_THROW(clip_grad_norm_({parameter}, 1.0, 2.0, /*error_if_nonfinite=*/true), RuntimeError);
  EXPECT_EQ(parameter.grad()[0].item<double>(), kInfinity);
  EXPECT_EQ(clip_grad_norm_({parameter}, 1.0), kInfinity);
  EXPECT_TRUE(parameter.grad().isnan().all().item<bool>());  // inf * 0
}

TEST(ACC_041, ClampsEveryElement) {
  const auto parameters = two_parameters(at::kFloat);
  clip_grad_value_(parameters, 1.25);
  EXPECT_TRUE(parameters[0].grad().flatten().equal(at::clamp(at::arange(1, 7, at::kFloat) / 2, std::nullopt, 1.25)));
  EXPECT_EQ(parameters[1].grad()[0].item<float>(), -1.25F);
  EXPECT_NO_THROW(clip_grad_value_({at::zeros({1})}, 1.0));
}

// Case by case PyTorch turns gradients round, or fills them with NaN, without a word.
TEST(Clipping, LimitsThatAreNoneAreRefusedAndLeaveTheGradients) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto parameter = parameter_with_gradient(at::arange(6, 10, 2, at::kFloat));
  for (const double limit : {-1.0, nan}) {
    EXPECT_THROW(clip_grad_norm_({parameter}, limit), InvalidArgument) << limit;
    EXPECT_THROW(clip_grad_value_({parameter}, limit), InvalidArgument) << limit;
  }
  EXPECT_THROW(clip_grad_norm_({parameter}, 1.0, nan), InvalidArgument);
  EXPECT_TRUE(parameter.grad().equal(at::arange(6, 10, 2, at::kFloat)));
  EXPECT_EQ(clip_grad_norm_({parameter}, kInfinity), 10.0) << "to measure alone";
  EXPECT_TRUE(parameter.grad().equal(at::arange(6, 10, 2, at::kFloat)));
}

}  // namespace
}  // namespace lockstep::optim
