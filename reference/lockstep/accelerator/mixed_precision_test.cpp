// What a mixed precision changes in a user's loop: dtypes, numbers, and that ranks still equal one process.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/modulelist.h>

#include <map>
#include <tuple>

#include "lockstep/accelerator/training_test_support.h"
#include "lockstep/base/error.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using config::AutocastKwargs;
using state::as_rank;
using test::Perceptron;
using test::Points;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

at::ScalarType dtype_of_product() {
  const auto x = at::ones({2, 2});
  return at::mm(x, x).scalar_type();
}

void with_mode(const std::string& mode, const std::function<void(Accelerator&)>& body,
               const std::vector<config::KwargsHandler>& handlers = {}) {
  as_rank(kCpu, [&] {
    Accelerator accelerator({.mixed_precision = mode, .cpu = true, .kwargs_handlers = handlers});
    body(accelerator);
  });
}

TEST(AMP_001, EachModeHasItsDtypeAndScaler) {
  const std::map<std::string, std::tuple<at::ScalarType, bool, bool>> modes{{"no", {at::kFloat, false, false}},
                                                                            {"bf16", {at::kBFloat16, true, false}},
                                                                            {"fp16", {at::kHalf, true, true}},
                                                                            {"fp8", {at::kBFloat16, true, false}}};
  for (const auto& [mode, expected] : modes) {
    with_mode(mode, [&](Accelerator& accelerator) {
      const auto& [dtype, native_amp, has_scaler] = expected;
      EXPECT_EQ(state::to_word(accelerator.mixed_precision()), mode);
      EXPECT_EQ(accelerator.native_amp(), native_amp) << mode;
      EXPECT_EQ(accelerator.scaler() != nullptr, has_scaler) << mode;
      const auto scope = accelerator.autocast();
      EXPECT_EQ(dtype_of_product(), dtype) << mode;
    });
  }
}

TEST(AMP_001, TheVariableSetsTheMode) {
  as_rank({{"ACCELERATE_USE_CPU", "1"}, {"ACCELERATE_MIXED_PRECISION", "bf16"}}, [] {
    const Accelerator accelerator;
    EXPECT_TRUE(accelerator.native_amp());
    EXPECT_EQ(accelerator.mixed_precision(), state::MixedPrecision::bf16);
    EXPECT_TRUE(Accelerator().native_amp()) << "a later one has the rank's";
  });
}

TEST(AMP_005, TheOptionsOfTheCallReplaceTheAccelerators) {
  with_mode("bf16",
            [](Accelerator& accelerator) {
              {
                const auto scope = accelerator.autocast();
                EXPECT_EQ(dtype_of_product(), at::kFloat) << "the handler's";
              }
              const auto scope = accelerator.autocast(AutocastKwargs{});
              EXPECT_EQ(dtype_of_product(), at::kBFloat16) << "the call's";
              const auto inner = accelerator.autocast(AutocastKwargs{.enabled = false});
              EXPECT_EQ(dtype_of_product(), at::kFloat);
            },
            {AutocastKwargs{.enabled = false}});
  EXPECT_EQ(dtype_of_product(), at::kFloat);
}

TEST(KW_004, WithoutMixedPrecisionAutocastDoesNothing) {
  with_mode("no", [](Accelerator& accelerator) {
    const auto scope = accelerator.autocast(AutocastKwargs{.enabled = true});
    EXPECT_EQ(dtype_of_product(), at::kFloat);
  });
}

/// Returns one product in every kind of container, and notes the dtype that it came in.
struct Nest : torch::nn::Module {
  using Output = std::tuple<at::Tensor, std::vector<at::Tensor>, std::map<std::string, at::Tensor>,
                            std::optional<std::pair<at::Tensor, int>>, Value, at::Tensor, at::Tensor, at::Tensor>;
  Output forward(const at::Tensor& x) {
    const auto y = at::mm(x, w);
    computed_in = y.scalar_type();
    return {y,
            {y, y},
            {{"y", y}},
            std::pair(y, 3),
            Value::dict({{"a", Value::list({y, Value::tuple({y.to(at::kDouble), "text"})})}}),
            y.to(at::kDouble),
            y.to(at::kLong),
            at::Tensor()};
  }
  at::Tensor w = register_parameter("w", at::ones({2, 2}));
  at::ScalarType computed_in = at::kFloat;
};

TEST(AMP_003, OutputsBecomeFloat32AtAnyDepthAndParametersStay) {
  for (const auto& [mode, dtype] : {std::pair("bf16", at::kBFloat16), std::pair("fp16", at::kHalf)}) {
    with_mode(mode, [&](Accelerator& accelerator) {
      const auto model = accelerator.prepare(std::make_shared<Nest>());
      const auto [one, list, map, maybe, value, real, whole, none] = model(at::ones({2, 2}));
      EXPECT_EQ(model->computed_in, dtype);
      EXPECT_EQ(one.scalar_type(), at::kFloat);
      EXPECT_EQ(list[1].scalar_type(), at::kFloat);
      EXPECT_EQ(map.at("y").scalar_type(), at::kFloat);
      EXPECT_EQ(maybe->first.scalar_type(), at::kFloat);
      EXPECT_EQ(value["a"][0].tensor().scalar_type(), at::kFloat);
      EXPECT_EQ(value["a"][1][0].tensor().scalar_type(), at::kDouble);
      EXPECT_EQ(value["a"][1][1].string(), "text");
      EXPECT_EQ(real.scalar_type(), at::kDouble);
      EXPECT_EQ(whole.scalar_type(), at::kLong);
      EXPECT_FALSE(none.defined());
      EXPECT_EQ(model->w.scalar_type(), at::kFloat);
      accelerator.backward(one.sum());
      EXPECT_EQ(model->w.grad().scalar_type(), at::kFloat);
      EXPECT_EQ(dtype_of_product(), at::kFloat) << "after the forward";
    });
  }
}

/// A struct of the user's, and what makes its tensors known.
struct Detection {
  at::Tensor boxes;
  std::vector<at::Tensor> scores;
};
template <typename Fn>
void visit_tensors(Detection& detection, const Fn& fn) {
  fn(detection.boxes);
  for (auto& score : detection.scores) fn(score);
}

TEST(AMP_003, AStructOfTheUsersIsConvertedToo) {
  struct Detector : torch::nn::Module {
    Detection forward(const at::Tensor& x) { return {at::mm(x, x), {at::mm(x, x)}}; }
  };
  with_mode("bf16", [](Accelerator& accelerator) {
    const auto found = accelerator.prepare(std::make_shared<Detector>())(at::ones({2, 2}));
    EXPECT_EQ(found.boxes.scalar_type(), at::kFloat);
    EXPECT_EQ(found.scores[0].scalar_type(), at::kFloat);
  });
}

TEST(AMP_004, OutputsAreConvertedAlsoWhereAutocastIsOff) {
  struct Halving : torch::nn::Module {
    at::Tensor forward(const at::Tensor& x) {
      computed_in = at::mm(x, x).scalar_type();
      return x.to(at::kHalf);
    }
    at::ScalarType computed_in = at::kHalf;
  };
  with_mode("bf16",
            [](Accelerator& accelerator) {
              const auto model = accelerator.prepare(std::make_shared<Halving>());
              EXPECT_EQ(model(at::ones({2, 2})).scalar_type(), at::kFloat);
              EXPECT_EQ(model->computed_in, at::kFloat);
            },
            {AutocastKwargs{.enabled = false}});
  with_mode("no", [](Accelerator& accelerator) {
    EXPECT_EQ(accelerator.prepare(std::make_shared<Halving>())(at::ones({2, 2})).scalar_type(), at::kHalf);
  });
}

TEST(AMP_010, UnwrappingRestoresTheForwardUnlessToldOtherwise) {
  with_mode("bf16", [](Accelerator& accelerator) {
    const auto net = std::make_shared<Nest>();
    const auto model = accelerator.prepare(net);
    const auto bare = accelerator.unwrap_model(model);
    EXPECT_EQ(bare, net);
    bare->forward(at::ones({2, 2}));
    EXPECT_EQ(net->computed_in, at::kFloat);
    const auto kept = accelerator.unwrap_model(model, keep_fp32_wrapper);
    EXPECT_EQ(kept.module(), net);
    EXPECT_EQ(std::get<0>(kept(at::ones({2, 2}))).scalar_type(), at::kFloat);
    EXPECT_EQ(net->computed_in, at::kBFloat16);
    model(at::ones({2, 2}));
    EXPECT_EQ(net->computed_in, at::kBFloat16) << "the prepared one is as it was";
  });
}

TEST(AMP_010, TheKeptOneHasNoEngine) {
  test::run_thread_ranks(2, [] {
    Accelerator accelerator({.mixed_precision = "bf16"});
    const auto model = accelerator.prepare(std::make_shared<test::Weight>());
    const auto kept = accelerator.unwrap_model(model, keep_fp32_wrapper);
    EXPECT_EQ(kept.engine(), nullptr);
    const auto before = accelerator.account().traffic();
    kept(at::ones({1}));
    EXPECT_TRUE(accelerator.account().traffic().since(before).counts().empty());
  });
}

/// Ten steps of SGD with momentum on eight points.
struct Course {
  std::vector<double> losses;
  std::vector<double> first_output;
  double scale = 1;
};

Course train(Accelerator& accelerator) {
  const auto net = std::make_shared<Perceptron>(at::kFloat);
  auto [model, optimizer] =
      accelerator.prepare(net, torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)));
  std::vector<at::Tensor> x, y;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto point = Points{8, at::kFloat}.get(i);
    x.push_back(point.data);
    y.push_back(point.target);
  }
  Course course;
  for (int step = 0; step < 10; ++step) {
    const auto output = model(at::stack(x));
    const auto loss = at::mse_loss(output, at::stack(y));
    accelerator.backward(loss);
    optimizer->step();
    optimizer->zero_grad();
    course.losses.push_back(loss.item<double>());
    for (int i = 0; step == 0 && i < 3; ++i) course.first_output.push_back(output[0][i].item<double>());
  }
  if (accelerator.scaler()) course.scale = accelerator.scaler()->get_scale();
  return course;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << "at " << i;
}

// Recorded in Python, torch 2.11.0 and accelerate 1.15.0, one thread: the same net, points and SGD under
// Accelerator(cpu=True, mixed_precision=...). The bounds: half a unit in the last place of the outputs near 1.
TEST(AMP_003, TrainingInBfloat16EqualsAcceleratesOwn) {
  with_mode("bf16", [](Accelerator& accelerator) {
    const auto course = train(accelerator);
    expect_near(course.first_output, {0.929688, 0.154297, -0.804688}, 0.004);
    expect_near(course.losses,
                {1.884941, 1.520626, 1.015913, 0.577336, 0.306488, 0.199774, 0.204457, 0.260892, 0.320721, 0.353321},
                0.004);
  });
}

TEST(AMP_003, WithoutMixedPrecisionTheNumbersAreTheFullOnes) {
  with_mode("no", [](Accelerator& accelerator) {
    const auto course = train(accelerator);
    expect_near(course.first_output, {0.928105, 0.156139, -0.801187}, 1e-6);
    expect_near(course.losses,
                {1.881366, 1.522234, 1.016835, 0.577944, 0.30677, 0.19973, 0.204341, 0.261161, 0.321593, 0.353809},
                2e-5);
  });
}

// Accelerate itself runs float32 here. Recorded with torch.autocast("cpu", float16) around the forward, the output
// converted to float32, and torch.amp.GradScaler("cpu", growth_interval=4): the scale grows twice, the ninth step
// overflows and is left out.
TEST(AMP_002, Fp16OnTheCpuIsAutocastWithAScaler) {
  with_mode("fp16",
            [](Accelerator& accelerator) {
              const auto course = train(accelerator);
              expect_near(course.first_output, {0.928223, 0.156616, -0.80127}, 5e-4);
              expect_near(
                  course.losses,
                  {1.881467, 1.522327, 1.016591, 0.577919, 0.30674, 0.199783, 0.204402, 0.261241, 0.3214, 0.3214},
                  5e-4);
              EXPECT_EQ(course.losses[8], course.losses[9]);
              EXPECT_EQ(course.scale, 131072);
            },
            {config::GradScalerKwargs{.growth_interval = 4}});
}

TEST(AMP_011, TrainingInFloat8FollowsTheFullPrecision) {
  Course full;
  with_mode("no", [&](Accelerator& accelerator) { full = train(accelerator); });
  with_mode("fp8", [&](Accelerator& accelerator) {
    const auto course = train(accelerator);
    expect_near(course.losses, full.losses, 0.06);
    EXPECT_NE(course.first_output, full.first_output);
  });
}

TEST(Autocast, BackwardInsideABlockGivesTheGradientsOfItsForward) {
  const auto gradient = [](bool inside) {
    const auto parameter = at::linspace(0, 1, 12).view({4, 3}).set_requires_grad(true);
    with_mode("bf16", [&](Accelerator& accelerator) {
      const auto loss = at::mm(parameter, at::linspace(-1, 2, 6).view({3, 2})).square().sum();  // in float32
      std::optional<precision::Autocast> block;
      if (inside) block.emplace(at::kCPU, at::kBFloat16);
      accelerator.backward(loss);
    });
    return parameter.grad();
  };
  EXPECT_TRUE(at::equal(gradient(true), gradient(false)));
}

}  // namespace
}  // namespace lockstep
