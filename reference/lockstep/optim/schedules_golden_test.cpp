// The rates and momenta of PyTorch's schedulers, in fixtures/golden/learning_rates.json.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/optim/composed_schedules.h"
#include "lockstep/optim/learning_rates.h"
#include "lockstep/optim/one_cycle_lr.h"
#include "lockstep/optim/schedules.h"

namespace lockstep::optim {
namespace {

using nlohmann::json;
using OptimizerPtr = std::shared_ptr<torch::optim::Optimizer>;
using Rates = std::vector<double>;

const json& recorded() {
  static const json document = json::parse(std::ifstream(LOCKSTEP_FIXTURES "/golden/learning_rates.json"));
  return document["records"];
}

template <typename Optimizer, typename Options>
OptimizerPtr optimizer_with(const Rates& rates, const Options& standard) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const auto rate : rates) {
    auto options = std::make_unique<Options>(standard);
    options->lr(rate);
    groups.emplace_back(std::vector{at::ones({1}).set_requires_grad(true)}, std::move(options));
  }
  return std::make_shared<Optimizer>(groups, standard);
}

OptimizerPtr optimizer_of(const json& record) {
  const auto rates = record["group_rates"].get<Rates>();
  if (record["optimizer"] == "AdamW") {
    return optimizer_with<torch::optim::AdamW>(rates, torch::optim::AdamWOptions());
  }
  return optimizer_with<torch::optim::SGD>(rates, torch::optim::SGDOptions(1.0).momentum(0.9));
}

PerGroup per_group(const json& given) {
  return given.is_array() ? PerGroup(given.get<Rates>()) : PerGroup(given.get<double>());
}

std::optional<std::int64_t> count(const json& arguments, const char* name) {
  return arguments.contains(name) ? std::optional(arguments[name].get<std::int64_t>()) : std::nullopt;
}

std::shared_ptr<Scheduler> one_cycle(const OptimizerPtr& optimizer, const json& arguments) {
  return std::make_shared<OneCycleLr>(
      optimizer,
      OneCycleOptions{
          .max_lr = per_group(arguments["max_lr"]),
          .total_steps = count(arguments, "total_steps"),
          .epochs = count(arguments, "epochs"),
          .steps_per_epoch = count(arguments, "steps_per_epoch"),
          .pct_start = arguments.value("pct_start", 0.3),
          .anneal_strategy = arguments.value("anneal_strategy", "cos") == "cos" ? Annealing::cos : Annealing::linear,
          .cycle_momentum = arguments.value("cycle_momentum", true),
          .base_momentum = per_group(arguments.value("base_momentum", json(0.85))),
          .max_momentum = per_group(arguments.value("max_momentum", json(0.95))),
          .div_factor = arguments.value("div_factor", 25.0),
          .final_div_factor = arguments.value("final_div_factor", 1e4),
          .three_phase = arguments.value("three_phase", false)});
}

std::shared_ptr<Scheduler> lambda(const OptimizerPtr& optimizer, const json& arguments) {
  std::vector<LrLambda> lambdas;
  for (const double slope : arguments["lr_lambda"]) {
    lambdas.emplace_back([slope](std::int64_t epoch) { return 1 / (1 + slope * static_cast<double>(epoch)); });
  }
  return std::make_shared<LambdaLr>(optimizer, lambdas);
}

std::shared_ptr<Scheduler> schedule_of(const OptimizerPtr& optimizer, const json& tree);

std::vector<std::shared_ptr<Scheduler>> parts_of(const OptimizerPtr& optimizer, const json& arguments) {
  std::vector<std::shared_ptr<Scheduler>> parts;
  for (const auto& part : arguments["schedulers"]) parts.push_back(schedule_of(optimizer, part));
  return parts;
}

std::shared_ptr<Scheduler> schedule_of(const OptimizerPtr& optimizer, const json& tree) {
  using Maker = std::function<std::shared_ptr<Scheduler>(const json&)>;
  const std::map<std::string, Maker> makers{
      {"ConstantLR",
       [&](const json& a) {
         return std::make_shared<ConstantLr>(optimizer, ConstantLrOptions{a["factor"], a["total_iters"]});
       }},
      {"LinearLR",
       [&](const json& a) {
         return std::make_shared<LinearLr>(
             optimizer, LinearLrOptions{a["start_factor"], a.value("end_factor", 1.0), a["total_iters"]});
       }},
      {"StepLR",
       [&](const json& a) { return std::make_shared<StepLr>(optimizer, a["step_size"], a.value("gamma", 0.1)); }},
      {"MultiStepLR",
       [&](const json& a) {
         return std::make_shared<MultiStepLr>(optimizer, a["milestones"].get<std::vector<std::int64_t>>(),
                                              a.value("gamma", 0.1));
       }},
      {"ExponentialLR", [&](const json& a) { return std::make_shared<ExponentialLr>(optimizer, a["gamma"]); }},
      {"PolynomialLR",
       [&](const json& a) {
         return std::make_shared<PolynomialLr>(optimizer, PolynomialLrOptions{a["total_iters"], a["power"]});
       }},
      {"CosineAnnealingLR",
       [&](const json& a) { return std::make_shared<CosineAnnealingLr>(optimizer, a["T_max"], a["eta_min"]); }},
      {"OneCycleLR", [&](const json& a) { return one_cycle(optimizer, a); }},
      {"LambdaLR", [&](const json& a) { return lambda(optimizer, a); }},
      {"ChainedScheduler", [&](const json& a) { return std::make_shared<ChainedScheduler>(parts_of(optimizer, a)); }},
      {"SequentialLR", [&](const json& a) {
         return std::make_shared<SequentialLr>(optimizer, parts_of(optimizer, a),
                                               a["milestones"].get<std::vector<std::int64_t>>());
       }}};
  return makers.at(tree["kind"])(tree["arguments"]);
}

// Each position costs a few roundings of 2^-53; 50 of them stay far within this.
constexpr double kBound = 1e-12;

void expect_near(const Rates& got, const json& expected, const json& record, std::size_t position) {
  ASSERT_EQ(got.size(), expected.size()) << record["schedule"];
  for (std::size_t group = 0; group < got.size(); ++group) {
    const auto right = expected[group].get<double>();
    ASSERT_NEAR(got[group], right, kBound * std::max(1.0, std::abs(right)))
        << record["schedule"] << " position " << position << " group " << group;
  }
}

void expect_recorded(const json& record) {
  const auto optimizer = optimizer_of(record);
  const auto schedule = schedule_of(optimizer, record["schedule"]);
  const auto* cycle = dynamic_cast<const OneCycleLr*>(schedule.get());
  const auto& positions = record["rates"];
  for (std::size_t position = 0; position < positions.size(); ++position) {
    if (position > 0) schedule->step();
    expect_near(learning_rates(*optimizer), positions[position], record, position);
    expect_near(schedule->last_learning_rates(), positions[position], record, position);
    if (cycle != nullptr) expect_near(cycle->last_momentums(), record["momenta"][position], record, position);
  }
  if (!record["error"].is_null()) EXPECT_THROW(schedule->step(), InvalidArgument) << record["schedule"];
}

TEST(Schedules, RatesAndMomentaArePyTorchs) {
  std::map<std::string, int> compared;
  for (const auto& record : recorded()) {
    expect_recorded(record);
    if (testing::Test::HasFatalFailure()) return;
    ++compared[record["schedule"]["kind"]];
  }
  int all = 0;
  for (const auto& [kind, number] : compared) all += number;
  std::cout << "compared " << all << " runs of " << compared.size() << " kinds of schedules\n";
  EXPECT_EQ(compared.size(), 11U);
  EXPECT_EQ(all, static_cast<int>(recorded().size()));
}

}  // namespace
}  // namespace lockstep::optim
