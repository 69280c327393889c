// When gradients are synchronised, and what they are meanwhile.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/accelerator/training_test_support.h"
#include "lockstep/base/error.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using data::test::Ids;
using state::as_rank;
using test::message_of;
using test::run_thread_ranks;
using test::Weight;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

// "FTFTT" per pass over a loader: T where the step synchronises.
template <typename Loader>
std::string sync_pattern(Accelerator& accelerator, Loader& loader) {
  std::string pattern;
  for ([[maybe_unused]] const Value& batch : loader) {
    const auto window = accelerator.accumulate();
    pattern += accelerator.sync_gradients() ? 'T' : 'F';
  }
  return pattern;
}

TEST(ACC_001, EveryKthStepSynchronisesAndTheLastOneOfThePass) {
  for (const int world_size : {1, 2}) {
    run_thread_ranks(world_size, [world_size] {
      Accelerator accelerator({.gradient_accumulation_steps = 2});
      EXPECT_TRUE(accelerator.sync_gradients()) << "initially";
      const auto loader = accelerator.prepare(data::DataLoader(Ids{static_cast<std::size_t>(5 * world_size)}));
      EXPECT_EQ(sync_pattern(accelerator, *loader), "FTFTT");
    });
  }
}

TEST(ACC_002, WindowsNeverSpanPasses) {
  as_rank(kCpu, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 3});
    const auto loader = accelerator.prepare(data::DataLoader(Ids{4}));
    for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(sync_pattern(accelerator, *loader), "FFTT") << pass;
  });
}

TEST(ACC_003, WithoutSyncWithDataloaderTheCountRunsOn) {
  as_rank(kCpu, [] {
    Accelerator accelerator({.gradient_accumulation_plugin =
                                 config::GradientAccumulationPlugin{.num_steps = 3, .sync_with_dataloader = false}});
    const auto loader = accelerator.prepare(data::DataLoader(Ids{5}));
    EXPECT_EQ(sync_pattern(accelerator, *loader), "FFTFF");
    EXPECT_EQ(sync_pattern(accelerator, *loader), "TFFTF");
  });
}

TEST(ACC_004, ALoaderThatWasNotPreparedNeverReportsItsEnd) {
  as_rank(kCpu, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 2});
    data::DataLoader loader(Ids{3});
    EXPECT_EQ(sync_pattern(accelerator, loader), "FTF");
    EXPECT_EQ(sync_pattern(accelerator, loader), "TFT");
  });
}

TEST(ACC_005, BackwardDividesByTheFullKAlsoInAShorterWindow) {
  as_rank(kCpu, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 4});
    auto [model, loader] = accelerator.prepare(std::make_shared<Weight>(), data::DataLoader(Ids{2}));
    int steps = 0;
    for ([[maybe_unused]] const Value& batch : *loader) {
      const auto window = accelerator.accumulate(model);
      accelerator.backward(model(torch::full({}, 2.0)).sum());
      EXPECT_EQ(model->gradient(), 0.5 * ++steps);
    }
    EXPECT_TRUE(accelerator.sync_gradients());
  });
}

TEST(ACC_005, ALossThatIsNoScalarNeedsAGradient) {
  for (const int world_size : {1, 2}) {
    run_thread_ranks(world_size, [] {
      Accelerator accelerator;
      const auto model = accelerator.prepare(std::make_shared<Weight>());
      const auto losses = model(torch::ones({2, 3}));
      const auto text = message_of<RuntimeError>([&] { accelerator.backward(losses); });
      EXPECT_NE(text.find("expected a scalar loss, got a loss of shape [2, 3]"), std::string::npos) << text;
      EXPECT_NE(text.find("mean() or sum()"), std::string::npos) << text;
      accelerator.backward(losses, torch::full({2, 3}, 0.5));
      EXPECT_EQ(model->gradient(), 3);
    });
  }
}

// Rank 0 takes 1, 3, 5 and rank 1 takes 2, 4, 6; w = 2, k = 3.
double input(const Accelerator& accelerator, int step) { return 1.0 + 2 * step + accelerator.process_index(); }

std::vector<double> gradients_of_a_window(Accelerator& accelerator, const modules::Prepared<Weight>& model) {
  std::vector<double> gradients;
  for (int step = 0; step < 3; ++step) {
    const auto window = accelerator.accumulate(model);
    accelerator.backward(model(torch::full({}, input(accelerator, step))).sum());
    gradients.push_back(model->gradient());
  }
  return gradients;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << "step " << i + 1;
}

TEST(ACC_006, GradientsAreLocalSumsAndAtSyncTheirMean) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 3});
    const auto model = accelerator.prepare(std::make_shared<Weight>(2.0));
    const bool is_first = accelerator.is_main_process();
    for (int window = 0; window < 3; ++window) {
      expect_near(gradients_of_a_window(accelerator, model),
                  is_first ? std::vector<double>{1.0 / 3, 4.0 / 3, 3.5} : std::vector<double>{2.0 / 3, 2, 3.5});
      model->zero_grad();
    }
  });
}

TEST(ACC_007, SeveralModelsSkipTogetherAndOneThatIsNotPassedReducesEachTime) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 2});
    auto [one, two, three] =
        accelerator.prepare(std::make_shared<Weight>(), std::make_shared<Weight>(), std::make_shared<Weight>());
    const double own = accelerator.process_index() + 1.0;
    for (int step = 1; step <= 2; ++step) {
      const auto window = accelerator.accumulate(one, two);
      const auto x = torch::full({}, 2 * own);  // divided by k: the rank's number
      accelerator.backward(one(x).sum() + two(x).sum() + three(x).sum());
      const double expected = step == 1 ? own : 3.0;
      EXPECT_EQ(one->gradient(), expected) << step;
      EXPECT_EQ(two->gradient(), expected) << step;
      EXPECT_EQ(three->gradient(), 1.5 * step) << step;
    }
  });
}

TEST(ACC_008, SyncEachBatchReducesEveryBackwardAndStepsAsBefore) {
  run_thread_ranks(2, [] {
    Accelerator accelerator(
        {.gradient_accumulation_plugin = config::GradientAccumulationPlugin{.num_steps = 3, .sync_each_batch = true}});
    const auto net = std::make_shared<Weight>(2.0);
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.1));
    const std::vector<double> expected{0.5, 5.0 / 3, 3.5};
    for (int step = 0; step < 3; ++step) {
      const auto window = accelerator.accumulate(model);
      EXPECT_EQ(accelerator.sync_gradients(), step == 2);
      accelerator.backward(model(torch::full({}, input(accelerator, step))).sum());
      EXPECT_NEAR(net->gradient(), expected[static_cast<std::size_t>(step)], 1e-6) << step;
      optimizer->step();
      EXPECT_NEAR(net->w.item<double>(), step == 2 ? 2 - 0.35 : 2, 1e-6) << step;
    }
  });
}

TEST(ACC_009, NoSyncKeepsGradientsLocalAndDoesNothingWithoutDdp) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    const double own = accelerator.process_index() + 1.0;
    {
      const auto local = accelerator.no_sync(model);
      accelerator.backward(model(torch::full({}, own)).sum());
    }
    EXPECT_EQ(model->gradient(), own);
    accelerator.backward(model(torch::full({}, own)).sum());
    EXPECT_EQ(model->gradient(), 3) << "the mean of twice the ranks' numbers";
  });
  as_rank(kCpu, [] {
    Accelerator accelerator;
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    const auto local = accelerator.no_sync(model);
    accelerator.backward(model(torch::full({}, 5.0)).sum());
    EXPECT_EQ(model->gradient(), 5);
    EXPECT_TRUE(accelerator.sync_gradients());
  });
}

TEST(ACC_009, ScopesMayEndInAnyOrder) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 2});
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    auto first = std::make_unique<Accumulation>(accelerator.no_sync(model));
    auto second = std::make_unique<Accumulation>(accelerator.accumulate(model));
    first.reset();
    EXPECT_FALSE(model.engine()->synchronises_gradients()) << "the second one lives";
    second.reset();
    EXPECT_TRUE(model.engine()->synchronises_gradients());
  });
}

TEST(ACC_010, TriggerSyncInBackwardReducesWhatTwoForwardsGathered) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    const double own = accelerator.process_index() + 1.0;
    for (int window = 0; window < 2; ++window) {
      torch::Tensor first, second;
      {
        const auto local = accelerator.no_sync(model);
        first = model(torch::full({}, own)).sum();
        second = model(torch::full({}, 10 * own)).sum();
        accelerator.backward(first);
        EXPECT_EQ(model->gradient(), own);
        const auto last = accelerator.trigger_sync_in_backward(model);
        accelerator.backward(second);
      }
      EXPECT_EQ(model->gradient(), 16.5);
      model->zero_grad();
    }
    accelerator.backward(model(torch::full({}, own)).sum());  // and the next ordinary forward finds all as it should be
    EXPECT_EQ(model->gradient(), 1.5);
  });
}

TEST(ACC_011, LeavingThePassInItsLastStepLeavesTheEndStanding) {
  as_rank(kCpu, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 3});
    const auto loader = accelerator.prepare(data::DataLoader(Ids{4}));
    int step = 0;
    for ([[maybe_unused]] const Value& batch : *loader) {
      if (++step == 4) break;
    }
    for (int later = 0; later < 4; ++later) {
      const auto window = accelerator.accumulate();
      EXPECT_TRUE(accelerator.sync_gradients()) << later;
    }
    EXPECT_EQ(sync_pattern(accelerator, *loader), "FFTT") << "the loader begins anew";
    EXPECT_EQ(sync_pattern(accelerator, *loader), "FFTT");
    const auto window = accelerator.accumulate();
    EXPECT_FALSE(accelerator.sync_gradients()) << "the loader is exhausted";
  });
}

TEST(ACC_012, AnExceptionInTheBlockDoesNotUndoTheCountButEndsTheScope) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 2});
    const auto model = accelerator.prepare(std::make_shared<Weight>());
    EXPECT_THROW(
        {
          const auto window = accelerator.accumulate(model);
          EXPECT_FALSE(model.engine()->synchronises_gradients());
          throw std::runtime_error("planted");
        },
        std::runtime_error);
    EXPECT_TRUE(model.engine()->synchronises_gradients());
    const auto window = accelerator.accumulate(model);
    EXPECT_TRUE(accelerator.sync_gradients()) << "the second step of the window";
  });
}

TEST(ACC_013, TheEnvironmentWinsOverTheArgument) {
  auto environment = kCpu;
  environment.set("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "3");
  as_rank(environment,
          [] { EXPECT_EQ(Accelerator({.gradient_accumulation_steps = 2}).gradient_accumulation_steps(), 3); });
  as_rank(kCpu, [] { EXPECT_EQ(Accelerator({.gradient_accumulation_steps = 2}).gradient_accumulation_steps(), 2); });
  as_rank(kCpu, [] {
    EXPECT_EQ(Accelerator({.gradient_accumulation_plugin = config::GradientAccumulationPlugin{}})
                  .gradient_accumulation_steps(),
              1);
  });
}

TEST(ACC_013, AnArgumentAndAPluginOrNoStepsAtAllAreRefused) {
  as_rank(kCpu, [] {
    const auto both = message_of<InvalidArgument>([] {
      Accelerator({.gradient_accumulation_steps = 2,
                   .gradient_accumulation_plugin = config::GradientAccumulationPlugin{.num_steps = 2}});
    });
    EXPECT_NE(both.find("either gradient_accumulation_steps or gradient_accumulation_plugin"), std::string::npos)
        << both;
    const auto zero = message_of<InvalidArgument>([] { Accelerator({.gradient_accumulation_steps = 0}); });
    EXPECT_NE(zero.find("expected at least 1, got 0"), std::string::npos) << zero;
    Accelerator accelerator;
    EXPECT_THROW(accelerator.set_gradient_accumulation_steps(-1), InvalidArgument);
    EXPECT_EQ(accelerator.gradient_accumulation_steps(), 1);
  });
}

TEST(ACC_015, SyncGradientsCanBeSetAndTheOptimizerObeys) {
  as_rank(kCpu, [] {
    Accelerator accelerator;
    EXPECT_TRUE(accelerator.sync_gradients());
    const auto net = std::make_shared<Weight>();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.5));
    accelerator.backward(model(torch::ones({})).sum());
    accelerator.set_sync_gradients(false);
    optimizer->step();
    optimizer->zero_grad();
    EXPECT_EQ(net->w.item<double>(), 1);
    EXPECT_EQ(net->gradient(), 1);
    accelerator.set_sync_gradients(true);
    optimizer->step();
    EXPECT_EQ(net->w.item<double>(), 0.5);
  });
}

TEST(DDP_007, ThePreparedOptimizerForgetsGradientsThatAreViews) {
  run_thread_ranks(2, [] {
    Accelerator accelerator({.ddp_kwargs = {.gradient_as_bucket_view = true}});
    const auto net = std::make_shared<Weight>();
    auto [model, optimizer] = accelerator.prepare(net, torch::optim::SGD(net->parameters(), 0.5));
    const auto backward = [&] {
      accelerator.backward(model(torch::full({}, accelerator.process_index() + 1.0)).sum());
    };
    backward();
    optimizer->zero_grad(/*set_to_none=*/false);
    EXPECT_EQ(net->gradient(), 0);
    backward();
    EXPECT_EQ(net->gradient(), 1.5);
    optimizer->zero_grad();
    EXPECT_FALSE(net->w.grad().defined());
    backward();
    EXPECT_EQ(net->gradient(), 1.5);
  });
}

}  // namespace
}  // namespace lockstep
