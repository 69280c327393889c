#include "lockstep/precision/autocast.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "lockstep/base/error.h"

namespace lockstep::precision {
namespace {

at::ScalarType dtype_of_product() {
  const auto x = at::ones({2, 2});
  return at::mm(x, x).scalar_type();
}

TEST(AMP_005, ABlockRunsInTheDtypeAndWhatFollowsDoesNot) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    {
      const Autocast scope(at::kCPU, dtype);
      EXPECT_EQ(dtype_of_product(), dtype);
      const auto x = at::ones({2, 2}, at::kDouble);
      EXPECT_EQ(at::mm(x, x).scalar_type(), at::kDouble);
    }
    EXPECT_EQ(dtype_of_product(), at::kFloat);
  }
}

TEST(AMP_005, ScopesNestAndOneInsideMaySwitchOff) {
  const Autocast outer(at::kCPU, at::kBFloat16);
  {
    const Autocast inner(at::kCPU, at::kHalf);
    EXPECT_EQ(dtype_of_product(), at::kHalf);
    {
      const Autocast off(at::kCPU, at::kHalf, {.enabled = false});
      EXPECT_EQ(dtype_of_product(), at::kFloat);
      const Autocast on_again(at::kCPU, at::kBFloat16);
      EXPECT_EQ(dtype_of_product(), at::kBFloat16);
    }
    EXPECT_EQ(dtype_of_product(), at::kHalf);
  }
  EXPECT_EQ(dtype_of_product(), at::kBFloat16);
}

TEST(AMP_005, AnEmptyScopeChangesNothing) {
  const Autocast nothing;
  EXPECT_EQ(dtype_of_product(), at::kFloat);
  const Autocast outer(at::kCPU, at::kBFloat16);
  const Autocast nothing_inside;
  EXPECT_EQ(dtype_of_product(), at::kBFloat16);
}

TEST(Autocast, AnExceptionEndsTheScope) {
  const bool cached = at::autocast::is_autocast_cache_enabled();
  try {
    const Autocast scope(at::kCPU, at::kHalf, {.cache_enabled = false});
    throw std::runtime_error("left early");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(dtype_of_product(), at::kFloat);
  EXPECT_EQ(at::autocast::is_autocast_cache_enabled(), cached);
  EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), at::kBFloat16);
}

TEST(Autocast, OtherThreadsAreLeftAlone) {
  const Autocast scope(at::kCPU, at::kBFloat16);
  std::thread([] { EXPECT_EQ(dtype_of_product(), at::kFloat); }).join();
}

TEST(Autocast, OtherDtypesAreRefused) {
  EXPECT_THROW(Autocast(at::kCPU, at::kFloat), InvalidArgument);
  EXPECT_EQ(dtype_of_product(), at::kFloat);
}

/// How many casts two uses of a parameter take.
std::size_t num_casts(std::optional<bool> cache_enabled) {
  const auto parameter = at::ones({4, 4}).set_requires_grad(true);
  const auto x = at::ones({2, 4});
  const Autocast scope(at::kCPU, at::kBFloat16, {.cache_enabled = cache_enabled});
  const auto cast = [&] { return at::mm(x, parameter).grad_fn()->next_edge(1).function; };
  const auto first = cast();
  EXPECT_NE(first, nullptr);
  return first == cast() ? 1 : 2;
}

TEST(KW_004, TheCastOfAParameterIsKeptUnlessToldOtherwise) {
  EXPECT_EQ(num_casts(std::nullopt), 1U);
  EXPECT_EQ(num_casts(true), 1U);
  EXPECT_EQ(num_casts(false), 2U);
}

TEST(Autocast, AParameterChangedBetweenScopesIsCastAnew) {
  const auto parameter = at::ones({1, 1}).set_requires_grad(true);
  const auto output = [&] {
    const Autocast scope(at::kCPU, at::kBFloat16);
    return at::mm(at::ones({1, 1}), parameter).item<float>();
  };
  EXPECT_EQ(output(), 1);
  {
    const at::NoGradGuard no_grad;
    parameter.fill_(3);
  }
  EXPECT_EQ(output(), 3);
}

TEST(Autocast, GradientsAreThoseOfTheForwardsDtypeWhereverBackwardRuns) {
  const auto x = at::linspace(-1, 1, 12).view({3, 4});
  const auto gradient = [&](bool inside) {
    const auto weight = at::linspace(0, 1, 8).view({2, 4}).set_requires_grad(true);
    std::optional<Autocast> scope(std::in_place, at::kCPU, at::kBFloat16);
    const auto loss = at::linear(x, weight).to(at::kFloat).square().sum();
    if (!inside) scope.reset();
    loss.backward();
    return weight.grad();
  };
  EXPECT_EQ(gradient(false).scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(gradient(false), gradient(true)));
}

TEST(Autocast, AForwardWithoutGradientsInsideAScopeDoesNotCutOffALaterOne) {
  const auto parameter = at::ones({2, 2}).set_requires_grad(true);
  const auto x = at::ones({1, 2});
  const Autocast block(at::kCPU, at::kBFloat16);
  {
    const at::NoGradGuard no_grad;
    const Autocast forward(at::kCPU, at::kBFloat16);
    EXPECT_FALSE(at::mm(x, parameter).requires_grad());
  }
  at::mm(x, parameter).sum().backward();
  EXPECT_TRUE(parameter.grad().defined());
}

}  // namespace
}  // namespace lockstep::precision
