// prepare(): what becomes of each kind of object, in which order, and once.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using data::test::Ids;
using state::as_rank;
using test::run_thread_ranks;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

torch::optim::SGD sgd_of(const torch::nn::Linear& model) {
  return torch::optim::SGD(model->parameters(), torch::optim::SGDOptions(0.1));
}

std::shared_ptr<optim::Scheduler> schedule_of(const std::shared_ptr<torch::optim::Optimizer>& optimizer) {
  return std::make_shared<optim::LambdaLr>(optimizer, [](std::int64_t) { return 1.0; });
}

TEST(STATE_145, ResultsComeInTheOrderOfTheArguments) {
  as_rank(kCpu, [] {
    Accelerator accelerator;
    torch::nn::Linear net(2, 1);
    const auto sgd = std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1));
    const auto mine = std::make_shared<std::string>("untouched");
    // The scheduler stands before its optimizer.
    auto [scheduler, loader, same, optimizer, model, number] =
        accelerator.prepare(schedule_of(sgd), data::DataLoader(Ids{4}), mine, sgd, net, 7);
    static_assert(std::is_same_v<decltype(model), modules::Prepared<torch::nn::LinearImpl>>);
    static_assert(std::is_same_v<decltype(loader), std::shared_ptr<data::PreparedDataLoader>>);
    static_assert(std::is_same_v<decltype(scheduler), std::shared_ptr<optim::PreparedScheduler>>);
    EXPECT_EQ(same, mine);
    EXPECT_EQ(number, 7);
    EXPECT_EQ(optimizer->optimizer(), sgd);
    EXPECT_EQ(model.module(), net.ptr());
    EXPECT_EQ(loader->total_dataset_length(), 4);
  });
}

TEST(STATE_145, OneArgumentGivesTheObjectAndNoTuple) {
  as_rank(kCpu, [] {
    Accelerator accelerator;
    const auto loader = accelerator.prepare(data::DataLoader(Ids{4}));
    static_assert(std::is_same_v<decltype(loader), const std::shared_ptr<data::PreparedDataLoader>>);
    EXPECT_EQ(loader->length(), 4);
    EXPECT_EQ(accelerator.prepare(std::string("text")), "text");
  });
}

TEST(STATE_145, TheSchedulerWaitsForTheOptimizerThatStandsAfterIt) {
  as_rank(kCpu, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 2});
    torch::nn::Linear net(2, 1);
    const auto sgd = std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1));
    const auto inner = schedule_of(sgd);
    auto [scheduler, optimizer] = accelerator.prepare(inner, sgd);
    for (int step = 1; step <= 4; ++step) {
      const auto window = accelerator.accumulate();
      scheduler->step();
      EXPECT_EQ(inner->last_epoch(), step / 2) << "it knows when its optimizer steps";
    }
  });
}

TEST(STATE_145, NullPointersAreRefused) {
  as_rank(kCpu, [] {
    Accelerator accelerator;
    EXPECT_THROW(accelerator.prepare(std::shared_ptr<torch::nn::LinearImpl>()), InvalidArgument);
    EXPECT_THROW(accelerator.prepare(torch::nn::Linear(nullptr)), InvalidArgument);
    EXPECT_THROW(accelerator.prepare(std::shared_ptr<torch::optim::SGD>()), InvalidArgument);
    EXPECT_THROW(accelerator.prepare(std::shared_ptr<optim::LambdaLr>()), InvalidArgument);
    EXPECT_THROW(static_cast<void>(accelerator.skip_first_batches(std::shared_ptr<data::PreparedDataLoader>(), 1)),
                 InvalidArgument);
    EXPECT_THROW(accelerator.unscale_gradients({nullptr}), InvalidArgument);
  });
}

TEST(STATE_146, WhatIsPreparedAlreadyComesBackAndIsRegisteredOnce) {
  run_thread_ranks(2, [] {
    Accelerator accelerator;
    torch::nn::Linear net(2, 1);
    auto [model, optimizer, loader] = accelerator.prepare(net, sgd_of(net), data::DataLoader(Ids{4}));
    auto [model_again, optimizer_again, loader_again] = accelerator.prepare(model, optimizer, loader);
    EXPECT_EQ(model_again.engine(), model.engine());
    EXPECT_EQ(model_again.module(), model.module());
    EXPECT_EQ(optimizer_again, optimizer);
    EXPECT_EQ(loader_again, loader);
    const auto text = test::message_of<InvalidArgument>([&] { static_cast<void>(accelerator.prepare(net)); });
    EXPECT_NE(text.find("each model once"), std::string::npos) << text;
  });
}

TEST(STATE_147, AListOfAnotherLengthIsRefusedWithTheNumberOfObjects) {
  as_rank(kCpu, [] {
    Accelerator accelerator;
    torch::nn::Linear net(2, 1);
    for (const auto& placement : {DevicePlacement{{true}}, DevicePlacement{{true, true, false}}}) {
      const auto text = test::message_of<InvalidArgument>(
          [&] { static_cast<void>(accelerator.prepare(placement, net, data::DataLoader(Ids{4}))); });
      EXPECT_NE(text.find("expected 2 values"), std::string::npos) << text;
    }
    EXPECT_NO_THROW(static_cast<void>(accelerator.prepare(net))) << "something was prepared before the refusal";
  });
}

// Says where it was moved, without moving.
struct Movable : torch::nn::Module {
  void to(torch::Device device, bool) override { place = device; }
  torch::Device place = torch::kCPU;
};

// The meta device stands for an accelerator.
TEST(STATE_147, EachObjectIsPlacedAsItsEntrySays) {
  as_rank({{"ACCELERATE_USE_CPU", "1"}, {"ACCELERATE_TORCH_DEVICE", "meta"}}, [] {
    Accelerator accelerator({.device_placement = false});
    auto [moved, kept, moving, keeping] =
        accelerator.prepare(DevicePlacement{{true, false, true, false}}, std::make_shared<Movable>(),
                            std::make_shared<Movable>(), data::DataLoader(Ids{1}), data::DataLoader(Ids{1}));
    EXPECT_TRUE(moved->place.is_meta());
    EXPECT_TRUE(kept->place.is_cpu());
    for (const Value& batch : *moving) EXPECT_TRUE(batch.tensor().is_meta());
    for (const Value& batch : *keeping) EXPECT_TRUE(batch.tensor().is_cpu());
    EXPECT_TRUE(accelerator.prepare(std::make_shared<Movable>())->place.is_cpu()) << "not as the Accelerator was told";
  });
}

void expect_parameters_of_rank_0() {
  Accelerator accelerator;
  torch::nn::Linear net(3, 2);
  {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : net->parameters()) parameter.fill_(accelerator.process_index() + 1);
  }
  const auto model = accelerator.prepare(net);
  EXPECT_NE(model.engine(), nullptr);
  for (const auto& parameter : model->parameters()) EXPECT_TRUE(parameter.eq(1).all().item<bool>());
  const auto output = model(torch::ones({1, 3}));
  EXPECT_TRUE(output.eq(4).all().item<bool>());
}

TEST(STATE_148, AModelIsWrappedAndHoldsTheParametersOfRank0) {
  for (const int world_size : {1, 2, 3}) run_thread_ranks(world_size, expect_parameters_of_rank_0);
  as_rank(kCpu, [] {
    Accelerator accelerator;
    EXPECT_EQ(accelerator.prepare(torch::nn::Linear(1, 1)).engine(), nullptr);  // not distributed
  });
}

TEST(STATE_149, FreeMemoryDropsWhatIsRegisteredAndStartsTheCountAnew) {
  as_rank(kCpu, [] {
    Accelerator accelerator({.gradient_accumulation_steps = 2});
    torch::nn::Linear net(2, 1);
    auto sgd = std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1));
    const std::weak_ptr<torch::optim::Optimizer> watched = sgd;
    auto [optimizer, loader] = accelerator.prepare(sgd, data::DataLoader(Ids{4}));
    sgd.reset();
    static_cast<void>(accelerator.accumulate());
    EXPECT_FALSE(accelerator.sync_gradients());
    accelerator.free_memory(optimizer, loader);
    EXPECT_EQ(optimizer, nullptr);
    EXPECT_EQ(loader, nullptr);
    EXPECT_TRUE(watched.expired());
    static_cast<void>(accelerator.accumulate());
    EXPECT_FALSE(accelerator.sync_gradients()) << "counted on from before";
    auto again = accelerator.prepare(net);  // not known any more
    accelerator.clear();
    EXPECT_NO_THROW(static_cast<void>(accelerator.prepare(net)));
  });
}

}  // namespace
}  // namespace lockstep
