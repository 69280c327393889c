// What Accelerate did, step by step, in fixtures/golden/state_ops.json.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/optim/prepared_scheduler.h"

namespace lockstep::optim {
namespace {

using nlohmann::json;
using torch::optim::SGD;
using torch::optim::SGDOptions;

const json& recorded() {
  static const json document = json::parse(std::ifstream(LOCKSTEP_FIXTURES "/golden/state_ops.json"));
  return document;
}

/// Skips steps as the record says.
class RecordedScaler final : public GradientScaler {
 public:
  bool skip = false;
  at::Tensor scale(const at::Tensor& loss) override { return loss; }
  void unscale_(torch::optim::Optimizer&) override {}
  bool step(torch::optim::Optimizer&, const LossClosure&) override { return !skip; }
  void update() override {}
};

/// Stands for the one-cycle schedule of the records: they tell its positions, which depend on its end alone.
class Ending final : public Scheduler {
 public:
  explicit Ending(std::int64_t total) : total_(total) {}
  std::vector<double> last_learning_rates() const override { return {}; }
  std::optional<std::int64_t> total_steps() const override { return total_; }

 private:
  void advance(std::optional<double>) override {}
  std::int64_t total_;
};

std::shared_ptr<Scheduler> schedule_of(const json& record, const std::shared_ptr<SGD>& sgd) {
  if (!record["total_steps"].is_null()) return std::make_shared<Ending>(record["total_steps"].get<std::int64_t>());
  return std::make_shared<LambdaLr>(sgd, [](std::int64_t) { return 1.0; });
}

void expect_positions(const json& record) {
  const auto sgd = std::make_shared<SGD>(std::vector{at::ones({1}).set_requires_grad(true)}, SGDOptions(1.0));
  state::GradientState gradient_state;
  const auto scaler = std::make_shared<RecordedScaler>();
  const auto optimizer = std::make_shared<PreparedOptimizer>(sgd, gradient_state, nullptr, scaler);
  PreparedScheduler scheduler(schedule_of(record, sgd), {optimizer}, gradient_state, nullptr,
                              {.step_with_optimizer = record["step_with_optimizer"] == 1,
                               .split_batches = record["split"] == 1,
                               .world_size = record["w"].get<int>()});
  for (const auto& call : record["trace"]) {  // [sync, skipped, position after]
    ASSERT_EQ(call.size(), 3U) << "the call failed, which no record should hold: " << record;
    scaler->skip = call[1] == 1;
    gradient_state.sync_gradients = true;
    optimizer->step();
    gradient_state.sync_gradients = call[0] == 1;
    scheduler.step();
    ASSERT_EQ(scheduler.last_epoch(), call[2].get<std::int64_t>()) << record;
  }
}

TEST(ACC_031, PositionsAreAccelerates) {
  int lambda = 0, ending = 0;
  for (const auto& record : recorded()["schedulers"]) {
    expect_positions(record);
    ++(record["total_steps"].is_null() ? lambda : ending);
  }
  std::cout << "compared " << lambda << " schedules without and " << ending << " with an end\n";
  EXPECT_EQ(lambda, 16);
  EXPECT_EQ(ending, 16);
}

/// Trains y = w * x, loss the sum, SGD with rate 1, w from 0, on what one rank of the record saw.
void expect_training(const json& record, const json& steps) {
  const auto world_size = record["w"].get<int>();
  auto weight = at::zeros({1}).set_requires_grad(true);
  const auto sgd = std::make_shared<SGD>(std::vector{weight}, SGDOptions(1.0));
  state::GradientState gradient_state;
  const auto optimizer = std::make_shared<PreparedOptimizer>(sgd, gradient_state);
  PreparedScheduler scheduler(std::make_shared<LambdaLr>(sgd, [](std::int64_t) { return 1.0; }), {optimizer},
                              gradient_state, nullptr, {.world_size = world_size});
  for (const auto& step : steps) {  // [x, sync, step counter, gradient after backward, w after step, position]
    gradient_state.sync_gradients = step[1] == 1;
    if (record["zero_grad_first"] == 1) optimizer->zero_grad();
    if (world_size == 1) {
      (weight * step[0].get<double>() / record["k"].get<double>()).sum().backward();
    } else {  // the gradient is a mean over ranks
      weight.mutable_grad() = at::full({1}, step[3].get<double>());
    }
    // Values are below 100 and single precision, so within 100 * 2^-24 per step of 14; the records are rounded to 1e-6.
    ASSERT_NEAR(weight.grad().item<double>(), step[3].get<double>(), 1e-4) << record;
    optimizer->step();
    scheduler.step();
    ASSERT_NEAR(weight.item<double>(), step[4].get<double>(), 1e-4) << record;
    ASSERT_EQ(scheduler.last_epoch(), step[5].get<std::int64_t>()) << record;
    if (record["zero_grad_first"] == 0) optimizer->zero_grad();
  }
}

TEST(ACC_020, WeightsAndPositionsOfTrainingAreAccelerates) {
  int runs = 0, steps_compared = 0;
  for (const auto& record : recorded()["train"]) {
    for (const auto& steps : record["ranks"]) {
      expect_training(record, steps);
      ++runs;
      steps_compared += static_cast<int>(steps.size());
    }
  }
  std::cout << "compared " << steps_compared << " micro-steps of " << runs << " runs\n";
  EXPECT_EQ(runs, 480);
}

}  // namespace
}  // namespace lockstep::optim
