#include "lockstep/precision/fp8_linear.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformerlayer.h>

#include "lockstep/precision/autocast.h"
#include "lockstep/precision/float8_model_test_support.h"
#include "lockstep/precision/policy.h"

namespace lockstep::precision {
namespace {

using test::kE4m3;
using test::kE5m2;

/// A layer's tensors, and what came of one forward and backward. `gradient` is the output's.
struct Products {
  at::Tensor x = at::linspace(-3, 2, 6 * 16).sin().view({6, 16}).set_requires_grad(true);
  at::Tensor w = at::linspace(-1, 2, 8 * 16).cos().view({8, 16}).set_requires_grad(true);
  at::Tensor b = at::linspace(0, 1, 8).set_requires_grad(true);
  at::Tensor gradient = at::linspace(-1, 1, 6 * 8).exp().mul(1e-3).view({6, 8});
  at::Tensor output;

  void run(const Fp8LayerPtr& layer, at::ScalarType dtype = at::kFloat) {
    output = fp8_linear(x, w, b, layer, dtype);
    output.backward(gradient.to(dtype));
  }
};

/// In units of float32 rounding of sums of 16 products.
void expect_close(const at::Tensor& actual, const at::Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const auto error = (actual.detach().to(at::kDouble) - expected).abs().max().item<double>();
  EXPECT_LE(error, 1e-6 * expected.abs().max().item<double>());
}

at::Tensor values(const test::Float8Model& model, const at::Tensor& tensor) {
  const float scale = model.scale_of(tensor);
  return model.quantize(tensor, scale) / static_cast<double>(scale);
}

TEST(AMP_011, ForwardAndBackwardMultiplyFloat8Numbers) {
  Products layer;
  layer.run(c10::make_intrusive<Fp8Layer>(Fp8Recipe{}));
  const auto x = values(kE4m3, layer.x);
  const auto w = values(kE4m3, layer.w);
  const auto g = values(kE5m2, layer.gradient);
  expect_close(layer.output, x.mm(w.t()) + layer.b.detach().to(at::kDouble));
  expect_close(layer.x.grad(), g.mm(w));
  expect_close(layer.w.grad(), g.t().mm(x));
  expect_close(layer.b.grad(), layer.gradient.to(at::kDouble).sum(0));
}

TEST(AMP_011, FormatsAreThoseOfTheRecipe) {
  for (const auto& [format, model] : {std::pair("E4M3", kE4m3), std::pair("E5M2", kE5m2)}) {
    Products layer;
    layer.run(c10::make_intrusive<Fp8Layer>(fp8_recipe_of({.fp8_format = format})));
    expect_close(layer.output,
                 values(model, layer.x).mm(values(model, layer.w).t()) + layer.b.detach().to(at::kDouble));
    expect_close(layer.x.grad(), values(model, layer.gradient).mm(values(model, layer.w)));
  }
}

TEST(AMP_011, OverriddenProductsStayOutOfFloat8) {
  const auto exact = [](const at::Tensor& tensor) { return tensor.detach().to(at::kDouble); };
  {
    Products layer;
    layer.run(c10::make_intrusive<Fp8Layer>(Fp8Recipe{.override_linear_precision = {.fprop = true}}));
    expect_close(layer.output, exact(layer.x).mm(exact(layer.w).t()) + exact(layer.b));
    expect_close(layer.x.grad(), values(kE5m2, layer.gradient).mm(values(kE4m3, layer.w)));
  }
  {
    Products layer;
    layer.run(c10::make_intrusive<Fp8Layer>(Fp8Recipe{.override_linear_precision = {.dgrad = true}}));
    expect_close(layer.x.grad(), exact(layer.gradient).mm(exact(layer.w)));
    expect_close(layer.w.grad(), values(kE5m2, layer.gradient).t().mm(values(kE4m3, layer.x)));
  }
  {
    Products layer;
    layer.run(c10::make_intrusive<Fp8Layer>(Fp8Recipe{.override_linear_precision = {.wgrad = true}}));
    expect_close(layer.x.grad(), values(kE5m2, layer.gradient).mm(values(kE4m3, layer.w)));
    expect_close(layer.w.grad(), exact(layer.gradient).t().mm(exact(layer.x)));
  }
}

TEST(AMP_011, ScalesAreThoseOfTheStepBefore) {
  const auto layer = c10::make_intrusive<Fp8Layer>(Fp8Recipe{});
  Products first;
  first.run(layer);
  Products second;
  {
    const at::NoGradGuard no_grad;
    second.x *= 10;
    second.gradient *= 10;
  }
  second.run(layer);
  const float scale = kE4m3.scale_of(first.x);
  const auto x = kE4m3.quantize(second.x, scale) / static_cast<double>(scale);  // most of it saturates
  expect_close(second.output, x.mm(values(kE4m3, second.w).t()) + second.b.detach().to(at::kDouble));
  EXPECT_EQ(layer->input.history().size(), 2U);
  EXPECT_EQ(layer->gradient.history().size(), 2U);
  EXPECT_FLOAT_EQ(layer->gradient.history().front(), 10 * layer->gradient.history().back());
}

TEST(Fp8Linear, DtypesShapesAndFrozenWeights) {
  const auto layer = c10::make_intrusive<Fp8Layer>(Fp8Recipe{});
  const auto x = at::ones({2, 3, 16}, at::kBFloat16).set_requires_grad(true);
  const auto w = at::ones({8, 16});
  const auto output = fp8_linear(x, w, {}, layer, at::kBFloat16);
  EXPECT_EQ(output.sizes(), (at::IntArrayRef{2, 3, 8}));
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
  output.sum().backward();
  EXPECT_EQ(x.grad().scalar_type(), at::kBFloat16);
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_FALSE(w.grad().defined());
  EXPECT_EQ(fp8_linear(at::ones({16}), w, {}, layer, at::kFloat).sizes(), (at::IntArrayRef{8}));
}

/// Runs `forward` as a prepared model's under mixed precision fp8.
template <typename Net>
at::Tensor forward_in_fp8(const Policy& policy, Net& net, const at::Tensor& x) {
  const auto precision = policy.for_model(*net);
  const auto scope = precision->enter(net->is_training());
  return net->forward(x);
}

/// Whether every element is what float8 arithmetic gives, and not what bfloat16 does.
bool is_in_fp8(const at::Tensor& output, const torch::nn::Linear& layer, const at::Tensor& x) {
  const auto expected = values(kE4m3, x).mm(values(kE4m3, layer->weight).t()) + layer->bias.detach().to(at::kDouble);
  return at::equal(output.detach(), expected.to(at::kBFloat16));
}

struct Fp8Model : testing::Test {
  torch::nn::Linear layer{16, 8};
  at::Tensor x = at::linspace(-3, 2, 6 * 16).sin().view({6, 16});
  Policy policy{{.mode = state::MixedPrecision::fp8}};
  at::Tensor in_bfloat16 = [this] {
    const Autocast autocast(at::kCPU, at::kBFloat16);
    return layer->forward(x);
  }();
};

TEST_F(Fp8Model, UnmodifiedLayersOfAPreparedModelRunInFloat8) {
  EXPECT_TRUE(is_in_fp8(forward_in_fp8(policy, layer, x), layer, x));
  EXPECT_FALSE(is_in_fp8(in_bfloat16, layer, x));
  EXPECT_EQ(layer->forward(x).scalar_type(), at::kFloat) << "outside";
}

TEST_F(Fp8Model, EvaluationRunsInBfloat16UnlessTheRecipeSaysOtherwise) {
  layer->eval();
  EXPECT_TRUE(at::equal(forward_in_fp8(policy, layer, x), in_bfloat16));
  const Policy also{{.mode = state::MixedPrecision::fp8, .fp8 = {.use_autocast_during_eval = true}}};
  EXPECT_TRUE(is_in_fp8(forward_in_fp8(also, layer, x), layer, x));
}

TEST_F(Fp8Model, WhereAutocastIsOffFloat8IsOffToo) {
  const Policy off{{.mode = state::MixedPrecision::fp8, .autocast = {.enabled = false}}};
  EXPECT_TRUE(at::equal(forward_in_fp8(off, layer, x), layer->forward(x)));
}

TEST_F(Fp8Model, Float64IsLeftAlone) {
  layer->to(at::kDouble);
  EXPECT_EQ(forward_in_fp8(policy, layer, x.to(at::kDouble)).scalar_type(), at::kDouble);
}

TEST_F(Fp8Model, AnotherModelsLayerIsLeftAlone) {
  const torch::nn::Linear other(16, 8);
  const auto precision = policy.for_model(*other);
  const auto scope = precision->enter(/*is_training=*/true);
  EXPECT_TRUE(at::equal(layer->forward(x), in_bfloat16));
}

TEST(Fp8Layers, FindsEveryLinearLayerOnceWhereverItStands) {
  const torch::nn::Linear twice(4, 4);
  const torch::nn::ModuleList inner(torch::nn::Linear(4, 2), torch::nn::ReLU());
  const torch::nn::ModuleList net(twice, inner, twice);
  EXPECT_EQ(Fp8Layers(*net, {}).size(), 2U);
}

TEST(Fp8Layers, ATransformerLayerTrainsInFloat8) {
  torch::nn::TransformerEncoderLayer net(
      torch::nn::TransformerEncoderLayerOptions(16, 2).dim_feedforward(32).dropout(0));
  const auto x = at::linspace(-3, 2, 5 * 2 * 16).sin().view({5, 2, 16});
  const auto exact = net->forward(x);
  const Policy policy{{.mode = state::MixedPrecision::fp8}};
  const auto precision = policy.for_model(*net);
  at::Tensor output;
  {
    const auto scope = precision->enter(/*is_training=*/true);
    output = net->forward(x);
  }
  const auto error = (output - exact).norm() / exact.norm();
  EXPECT_GT(error.item<double>(), 0.004) << "bfloat16 alone would be closer";
  EXPECT_LT(error.item<double>(), 0.1);
  output.sum().backward();
  for (const auto& parameter : net->named_parameters())
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
}

}  // namespace
}  // namespace lockstep::precision
