#include "lockstep/conformance/serve/optimizers.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <tuple>

#include "lockstep/optim/one_cycle_lr.h"
#include "lockstep/optim/schedules.h"

namespace lockstep::conformance {
namespace {

template <typename Optimizer>
class Counted final : public Optimizer {
 public:
  template <typename Options>
  Counted(std::vector<at::Tensor> parameters, const Options& options, std::shared_ptr<std::int64_t> num_steps)
      : Optimizer(std::move(parameters), options), num_steps_(std::move(num_steps)) {}

  at::Tensor step(torch::optim::Optimizer::LossClosure closure = nullptr) override {
    ++*num_steps_;
    return Optimizer::step(std::move(closure));
  }

 private:
  std::shared_ptr<std::int64_t> num_steps_;
};

template <typename Optimizer, typename Options>
CountedOptimizer counted(std::vector<at::Tensor> parameters, const Options& options) {
  auto num_steps = std::make_shared<std::int64_t>(0);
  return {.optimizer = std::make_shared<Counted<Optimizer>>(std::move(parameters), options, num_steps),
          .num_steps = num_steps};
}

torch::optim::SGDOptions sgd_options(Arguments& arguments) {
  torch::optim::SGDOptions options(arguments.number("lr", 1e-3));
  options.momentum(arguments.number("momentum", 0));
  options.weight_decay(arguments.number("weight_decay", 0));
  return options;
}

std::tuple<double, double> betas_from(Arguments& arguments) {
  const auto betas = arguments.json("betas");
  if (betas.is_null()) return {0.9, 0.999};
  if (!betas.is_array() || betas.size() != 2 || !betas[0].is_number() || !betas[1].is_number()) {
    arguments.refuse("betas", "two numbers");
  }
  return {betas[0].get<double>(), betas[1].get<double>()};
}

template <typename Options>
Options adam_options(Arguments& arguments) {
  Options options(arguments.number("lr", 1e-3));
  options.betas(betas_from(arguments));
  options.eps(arguments.number("eps", 1e-8));
  options.weight_decay(arguments.number("weight_decay", 0));
  return options;
}

CountedOptimizer make_optimizer(Arguments& arguments, std::vector<at::Tensor> parameters) {
  using namespace torch::optim;
  const auto kind = arguments.word("kind");
  if (kind == "sgd") return counted<SGD>(std::move(parameters), sgd_options(arguments));
  if (kind == "adam") return counted<Adam>(std::move(parameters), adam_options<AdamOptions>(arguments));
  if (kind == "adamw") return counted<AdamW>(std::move(parameters), adam_options<AdamWOptions>(arguments));
  arguments.refuse("kind", "sgd, adam or adamw");
}

std::shared_ptr<optim::Scheduler> inverse(std::shared_ptr<torch::optim::Optimizer> optimizer) {
  const auto rate = [](std::int64_t position) { return 1.0 / (1.0 + static_cast<double>(position)); };
  return std::make_shared<optim::LambdaLr>(std::move(optimizer), rate);
}

optim::LinearLrOptions linear_options(Arguments& arguments) {
  optim::LinearLrOptions options;
  options.start_factor = arguments.number("start_factor", options.start_factor);
  options.end_factor = arguments.number("end_factor", options.end_factor);
  options.total_iters = arguments.integer("total_iters", options.total_iters);
  return options;
}

std::shared_ptr<optim::Scheduler> make_scheduler(const std::string& kind, Arguments& arguments,
                                                 std::shared_ptr<torch::optim::Optimizer> optimizer) {
  using namespace optim;
  if (kind == "inverse") return inverse(std::move(optimizer));
  if (kind == "step") {
    return std::make_shared<StepLr>(std::move(optimizer), arguments.integer("step_size"),
                                    arguments.number("gamma", 0.1));
  }
  if (kind == "linear") return std::make_shared<LinearLr>(std::move(optimizer), linear_options(arguments));
  if (kind == "cosine") return std::make_shared<CosineAnnealingLr>(std::move(optimizer), arguments.integer("t_max"));
  if (kind == "one_cycle") {
    const OneCycleOptions options{.max_lr = arguments.number("max_lr"),
                                  .total_steps = arguments.optional_integer("total_steps")};
    return std::make_shared<OneCycleLr>(std::move(optimizer), options);
  }
  arguments.refuse("kind", "inverse, step, linear, cosine or one_cycle");
}

}  // namespace

CountedOptimizer optimizer_from(Arguments& arguments, std::vector<at::Tensor> parameters) {
  auto optimizer = make_optimizer(arguments, std::move(parameters));
  arguments.finish();
  return optimizer;
}

std::shared_ptr<optim::Scheduler> scheduler_from(Arguments& arguments,
                                                 std::shared_ptr<torch::optim::Optimizer> optimizer) {
  const auto kind = arguments.word("kind");
  auto scheduler = make_scheduler(kind, arguments, std::move(optimizer));
  arguments.finish();
  return scheduler;
}

}  // namespace lockstep::conformance
