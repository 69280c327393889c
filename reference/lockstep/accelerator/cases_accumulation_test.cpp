// Failures from the field, as small inputs: accumulation, its last window, evaluation in between, and clipping.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "lockstep/accelerator/training_test_support.h"
#include "lockstep/base/error.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using config::AccumulationRule;
using config::GradientAccumulationPlugin;
using data::test::Count;
using data::test::Ids;
using test::run_thread_ranks;
using test::Weight;
using torch::optim::SGD;
using Gradients = std::vector<double>;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

data::DataLoader ids(std::size_t n, std::int64_t b = 1) { return data::DataLoader(Ids{n}, {.batch_size = b}); }

/// The gradient at each optimizer step of a pass in which micro-batch i of every rank has x = inputs[i], loss = w x.
Gradients gradients_of_pass(const GradientAccumulationPlugin& plugin, const std::vector<double>& inputs) {
  Accelerator accelerator({.gradient_accumulation_plugin = plugin});
  const auto num_items = inputs.size() * static_cast<std::size_t>(accelerator.num_processes());
  auto [model, loader] = accelerator.prepare(std::make_shared<Weight>(), ids(num_items));
  const auto optimizer = accelerator.prepare(SGD(model->parameters(), 0.0));
  Gradients gradients;
  auto x = inputs.begin();
  for ([[maybe_unused]] const Value& batch : *loader) {
    const auto window = accelerator.accumulate(model);
    accelerator.backward(model(at::full({}, *x++)).sum());
    if (accelerator.sync_gradients()) gradients.push_back(model->gradient());
    optimizer->step();
    optimizer->zero_grad();
  }
  return gradients;
}

void expect_near(const Gradients& actual, const Gradients& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << "window " << i + 1;
}

TEST(CaseC1, TheLastShorterWindowIsOneMeanAmongOthersIfAskedFor) {
  for (const int world : {1, 2, 3}) {
    run_thread_ranks(world, [] {
      const std::vector<double> ones(6, 1.0);
      EXPECT_EQ(gradients_of_pass({.num_steps = 4}, ones), (Gradients{1.0, 0.5})) << "by the steps, as ever";
      EXPECT_EQ(gradients_of_pass({.num_steps = 4, .accumulation_rule = AccumulationRule::window_mean}, ones),
                (Gradients{1.0, 1.0}));
    });
  }
}

TEST(CaseC1, EachWindowIsItsOwnMeanWhateverItsLength) {
  run_thread_ranks(2, [] {
    for (const bool each : {false, true}) {
      const GradientAccumulationPlugin plugin{
          .num_steps = 3, .sync_each_batch = each, .accumulation_rule = AccumulationRule::window_mean};
      expect_near(gradients_of_pass(plugin, {1, 2, 6, 5}), {3, 5});
      expect_near(gradients_of_pass(plugin, {1, 2, 6, 5, 8}), {3, 6.5});
      expect_near(gradients_of_pass(plugin, {1, 2, 6}), {3});
      expect_near(gradients_of_pass(plugin, {7, 2}), {4.5});
    }
  });
}

TEST(CaseC1, NeitherTheLengthOfTheLoaderNorAPreparedModelIsNeeded) {
  state::as_rank(kCpu, [] {
    Accelerator accelerator({.gradient_accumulation_plugin = GradientAccumulationPlugin{
                                 .num_steps = 4, .accumulation_rule = AccumulationRule::window_mean}});
    const auto net = std::make_shared<Weight>(0.0);
    auto [optimizer, loader] = accelerator.prepare(SGD(net->parameters(), 1.0),
                                                   data::DataLoader(std::make_shared<Count>(6), {.batch_size = 1}));
    for (int pass = 0; pass < 2; ++pass) {
      for ([[maybe_unused]] const Value& batch : *loader) {
        const auto window = accelerator.accumulate();
        accelerator.backward(net->w.sum());
        accelerator.backward(2 * net->w.sum());  // several losses of one micro-batch are added
        optimizer->step();
        optimizer->zero_grad();
      }
      EXPECT_EQ(net->w.item<double>(), -6.0 * (pass + 1)) << "two steps, each of gradient 3";
    }
  });
}

TEST(CaseC1, AWindowThatIsShortenedOnTheWayIsAMeanToo) {
  state::as_rank(kCpu, [] {
    Accelerator accelerator({.gradient_accumulation_plugin = GradientAccumulationPlugin{
                                 .num_steps = 8, .accumulation_rule = AccumulationRule::window_mean}});
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    for (const double x : {1.0, 2.0, 4.0, 5.0}) {
      if (x == 4) accelerator.set_gradient_accumulation_steps(2);
      const auto window = accelerator.accumulate(model);
      accelerator.backward(model(at::full({}, x)).sum());
    }
    EXPECT_TRUE(accelerator.sync_gradients());
    EXPECT_EQ(model->gradient(), 3);
  });
}

TEST(CaseC1, UnderALossScaleThePlaceOfTheWindowInThePassDoesNotShow) {
  state::as_rank(kCpu, [] {
    Accelerator accelerator({.mixed_precision = "fp16",
                             .gradient_accumulation_plugin = GradientAccumulationPlugin{
                                 .num_steps = 4, .accumulation_rule = AccumulationRule::window_mean}});
    auto [model, loader] = accelerator.prepare(std::make_shared<Weight>(), ids(6));
    const auto optimizer = accelerator.prepare(SGD(model->parameters(), 1.0));
    for ([[maybe_unused]] const Value& batch : *loader) {
      const auto window = accelerator.accumulate(model);
      accelerator.backward(model(at::full({}, 1.0)).sum());
      if (accelerator.sync_gradients()) EXPECT_EQ(accelerator.clip_grad_norm_(model->parameters(), 10), 1);
      optimizer->step();
      optimizer->zero_grad();
    }
    EXPECT_EQ(model->w.item<double>(), -1) << "from 1, by two steps of 1";
  });
}

TEST(CaseC9, EvaluationInsideAWindowLeavesItsPatternAlone) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 4});
    auto [train, eval] = accelerator.prepare(ids(64, 2), ids(12, 2));
    const auto& gradients = accelerator.gradient_state();
    std::string pattern;
    std::string ends;  // of the evaluation
    for ([[maybe_unused]] const Value& batch : *train) {
      const auto window = accelerator.accumulate();
      pattern += accelerator.sync_gradients() ? '1' : '0';
      if (pattern.size() != 6) continue;
      for ([[maybe_unused]] const Value& item : *eval) ends += gradients.end_of_dataloader() ? '1' : '0';
      EXPECT_FALSE(accelerator.sync_gradients());
      EXPECT_FALSE(gradients.end_of_dataloader());
    }
    EXPECT_EQ(pattern, "0001000100010001");
    EXPECT_EQ(ends, "001");
  });
}

TEST(CaseC9, TheOptimizerStepsAsWithoutTheEvaluation) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 4});
    auto [model, train, eval] = accelerator.prepare(std::make_shared<Weight>(), ids(64, 2), ids(12, 2));
    const auto optimizer = accelerator.prepare(SGD(model->parameters(), 1.0));
    int step = 0;
    for ([[maybe_unused]] const Value& batch : *train) {
      const auto window = accelerator.accumulate(model);
      accelerator.backward(model(at::full({}, 1.0)).sum());
      optimizer->step();
      optimizer->zero_grad();
      if (++step != 6) continue;
      for ([[maybe_unused]] const Value& item : *eval) {
        const at::NoGradGuard no_grad;
        static_cast<void>(model(at::full({}, 1.0)));
      }
    }
    EXPECT_EQ(step, 16);
    EXPECT_EQ(model->w.item<double>(), 1 - 4) << "four steps of 1";
  });
}

TEST(CaseC11, AllMicroBatchesCountWhenTheModelIsValidatedInTheMidst) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 4});
    auto [model, train, eval] = accelerator.prepare(std::make_shared<Weight>(), ids(8), ids(4));
    const auto optimizer = accelerator.prepare(SGD(model->parameters(), 1.0));
    double x = 1;
    for ([[maybe_unused]] const Value& batch : *train) {
      const auto window = accelerator.accumulate(model);
      accelerator.backward(model(at::full({}, x)).sum());
      if (accelerator.sync_gradients()) EXPECT_EQ(model->gradient(), 3.75) << "(1 + 2 + 4 + 8) / 4";
      if (x == 2) {
        model->eval();
        for ([[maybe_unused]] const Value& item : *eval) {
          const at::NoGradGuard no_grad;
          static_cast<void>(model(at::full({}, 100.0)));
          optimizer->zero_grad();  // a validation loop that clears, as many do
        }
        model->train();
      }
      optimizer->step();
      optimizer->zero_grad();
      x *= 2;
    }
    EXPECT_EQ(model->w.item<double>(), 1 - 3.75);
  });
}

TEST(CaseC13, UnderBf16NothingIsScaledAndTheStepsGradientIsForgotten) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.mixed_precision = "bf16"});
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    const auto optimizer = accelerator.prepare(SGD(model->parameters(), 0.5));
    EXPECT_EQ(accelerator.scaler(), nullptr);
    for (int step = 1; step <= 2; ++step) {
      accelerator.backward(model(at::full({}, 1.0)).sum());
      EXPECT_EQ(model->gradient(), 1.0);
      EXPECT_EQ(accelerator.clip_grad_norm_(model->parameters(), 10), 1.0);
      EXPECT_EQ(model->gradient(), 1.0);
      optimizer->step();
      EXPECT_EQ(model->w.item<double>(), 1 - 0.5 * step);
      optimizer->zero_grad();
      EXPECT_FALSE(model->w.grad().defined());
    }
  });
}

TEST(CaseC15, TheNormIsThatOfTheAveragedGradientBeforeClipping) {
  for (const bool is_fp16 : {false, true}) {
    run_thread_ranks(2, [is_fp16] {
      Accelerator accelerator({.mixed_precision = is_fp16 ? "fp16" : "no"});
      auto [first, second] = accelerator.prepare(std::make_shared<Weight>(), std::make_shared<Weight>());
      const auto optimizer = accelerator.prepare(SGD({first->w, second->w}, 1.0));
      const double own = accelerator.is_main_process() ? 0.5 : 1.5;  // 1 on average
      accelerator.backward(first(at::full({}, 6 * own)).sum() + second(at::full({}, 8 * own)).sum());
      EXPECT_EQ(accelerator.clip_grad_norm_({first->w, second->w}, /*max_norm=*/1), 10);
      EXPECT_NEAR(first->gradient(), 0.6, 1e-6);
      EXPECT_NEAR(second->gradient(), 0.8, 1e-6);
      optimizer->step();
      EXPECT_NEAR(first->w.item<double>(), 0.4, 1e-6);
    });
  }
}

}  // namespace
}  // namespace lockstep
