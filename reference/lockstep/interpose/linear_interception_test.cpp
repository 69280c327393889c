#include "lockstep/interpose/linear_interception.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/linear.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <stdexcept>
#include <thread>

namespace lockstep::interpose {
namespace {

LinearInterception::Replacement counting(int& calls) {
  return [&calls](const at::Tensor&, const at::Tensor&, const at::Tensor&) -> std::optional<at::Tensor> {
    ++calls;
    return std::nullopt;
  };
}

TEST(LinearInterception, SeesTheLinearLayersOfUnmodifiedModulesAndNothingElse) {
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::ReLU(), torch::nn::Linear(4, 2));
  const auto x = at::randn({5, 3});
  const auto expected = net->forward(x);
  int calls = 0;
  {
    const LinearInterception scope(counting(calls));
    EXPECT_TRUE(at::equal(net->forward(x), expected));
    EXPECT_EQ(calls, 2);
    torch::nn::Conv1d(3, 2, 1)->forward(at::randn({1, 3, 4}));
    at::matmul(x, at::ones({3, 3}).narrow(1, 0, 2));
    EXPECT_EQ(calls, 2);
    net->forward(x.view({1, 5, 3}));
    torch::nn::functional::linear(x, at::ones({2, 3}));
    at::linear(x, at::ones({2, 3}));
    EXPECT_EQ(calls, 6) << "more dimensions, no bias, and the operator itself";
  }
  net->forward(x);
  EXPECT_EQ(calls, 6) << "after the scope";
}

TEST(LinearInterception, TheReplacementComputesTheResultAndItsGradient) {
  torch::nn::Linear layer(2, 2);
  const auto x = at::ones({1, 2});
  const LinearInterception scope([&](const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
    EXPECT_TRUE(weight.is_alias_of(layer->weight));
    EXPECT_TRUE(at::equal(weight, layer->weight));
    EXPECT_TRUE(bias.is_same(layer->bias));
    return at::linear(input, weight) * 3;  // the inner one is LibTorch's own
  });
  layer->forward(x).sum().backward();
  EXPECT_TRUE(at::equal(layer->weight.grad(), at::full({2, 2}, 3.0)));
  EXPECT_FALSE(layer->bias.grad().defined());
}

TEST(LinearInterception, ALayerWithoutBiasHasAnUndefinedOne) {
  torch::nn::Linear layer(torch::nn::LinearOptions(2, 2).bias(false));
  int calls = 0;
  const LinearInterception scope(
      [&](const at::Tensor&, const at::Tensor&, const at::Tensor& bias) -> std::optional<at::Tensor> {
        EXPECT_FALSE(bias.defined());
        ++calls;
        return std::nullopt;
      });
  EXPECT_EQ(layer->forward(at::ones({1, 2})).sizes(), (at::IntArrayRef{1, 2}));
  EXPECT_EQ(calls, 1);
}

TEST(LinearInterception, ProductsThatAreNoLinearLayersKeepTheirMeaning) {
  const auto x = at::ones({2, 3});
  const auto w = at::ones({4, 3});
  const LinearInterception scope([](const at::Tensor&, const at::Tensor&, const at::Tensor&) {
    return std::optional<at::Tensor>(at::zeros({2, 4}));
  });
  EXPECT_TRUE(at::equal(at::addmm(at::ones({4}), x, w.t(), /*beta=*/2, /*alpha=*/3), at::full({2, 4}, 11.0)));
  EXPECT_TRUE(at::equal(at::addmm(at::ones({2, 4}), x, w.t()), at::full({2, 4}, 4.0)));
}

TEST(LinearInterception, TheInnermostDecidesAndAnExceptionRestoresTheOuter) {
  torch::nn::Linear layer(2, 2);
  const auto x = at::ones({1, 2});
  int outer = 0;
  int inner = 0;
  const LinearInterception first(counting(outer));
  try {
    const LinearInterception second(counting(inner));
    layer->forward(x);
    throw std::runtime_error("left early");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(outer, 0);
  layer->forward(x);
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(outer, 1);
}

TEST(LinearInterception, OtherThreadsAreLeftAlone) {
  int calls = 0;
  const LinearInterception scope(counting(calls));
  std::thread([] { torch::nn::Linear(2, 2)->forward(at::ones({1, 2})); }).join();
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace lockstep::interpose
