#include <ATen/Functions.h>
#include <torch/optim/sgd.h>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/conformance/serve/accelerator_case.h"
#include "lockstep/conformance/serve/answers.h"
#include "lockstep/conformance/serve/models.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/precision/grad_scaler.h"
#include "lockstep/value/dtype.h"
#include "lockstep/value/json.h"

namespace lockstep::conformance {
namespace {

config::GradScalerKwargs scaler_kwargs_from(Arguments& arguments) {
  config::GradScalerKwargs kwargs;
  kwargs.init_scale = arguments.number("init_scale", kwargs.init_scale);
  kwargs.growth_factor = arguments.number("growth_factor", kwargs.growth_factor);
  kwargs.backoff_factor = arguments.number("backoff_factor", kwargs.backoff_factor);
  kwargs.growth_interval = arguments.small_integer("growth_interval", kwargs.growth_interval);
  kwargs.enabled = arguments.flag("enabled", kwargs.enabled);
  return kwargs;
}

/// The true gradients of a step: one for each optimizer, none where there is no gradient.
using Gradients = std::vector<std::optional<double>>;

std::optional<double> gradient_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  const auto number = value_from(json, "grads");
  if (!number.is_integer() && !number.is_real()) throw Unsupported("grads: expected numbers");
  return number.number();
}

std::vector<Gradients> gradients_from(Arguments& arguments, std::int64_t num_optimizers) {
  std::vector<Gradients> steps;
  for (const auto& step : arguments.json("grads")) {
    auto& gradients = steps.emplace_back();
    if (!step.is_array()) {
      gradients.assign(static_cast<std::size_t>(num_optimizers), gradient_from(step));
    } else {
      for (const auto& one : step) gradients.push_back(gradient_from(one));
    }
    if (gradients.size() != static_cast<std::size_t>(num_optimizers)) {
      arguments.refuse("grads", "a number for each optimizer");
    }
  }
  return steps;
}

/// Prepared optimizers of one parameter each that share a scaler. Gradients are given, nothing is differentiated.
class ScaledSteps {
 public:
  ScaledSteps(const config::GradScalerKwargs& kwargs, std::int64_t num_optimizers, bool unscale)
      : accelerator_({.cpu = true}), scaler_(std::make_shared<precision::GradScaler>(kwargs)), unscale_(unscale) {
    for (std::int64_t k = 0; k < num_optimizers; ++k) {
      auto& parameter = parameters_.emplace_back(at::zeros({1}).set_requires_grad(true));
      auto optimizer = std::make_shared<torch::optim::SGD>(std::vector{parameter}, torch::optim::SGDOptions(1.0));
      scaler_->share_with(*optimizer);
      optimizers_.emplace_back(std::move(optimizer), accelerator_.gradient_state(), nullptr, scaler_);
    }
  }

  Json step(const Gradients& gradients) {
    static_cast<void>(scaler_->scale(at::ones({})));  // as for the loss of a backward
    const auto scale = scaler_->get_scale();
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      parameters_[k].mutable_grad() = gradients[k] ? at::full({1}, *gradients[k], at::kFloat) * scale : at::Tensor();
    }
    if (unscale_) {
      for (const auto& optimizer : optimizers_) scaler_->unscale_(*optimizer.optimizer());
    }
    for (auto& optimizer : optimizers_) optimizer.step();
    return outcome();
  }

 private:
  [[nodiscard]] Json outcome() const {
    Json result = {{"params", Json::array()}, {"skipped", Json::array()}};
    for (const auto& parameter : parameters_) {
      result["params"].push_back(value::to_json(parameter.item<double>()));
    }
    for (const auto& optimizer : optimizers_) result["skipped"].push_back(optimizer.step_was_skipped());
    result["scale"] = value::to_json(scaler_->get_scale());
    return result;
  }

  Accelerator accelerator_;
  std::shared_ptr<precision::GradScaler> scaler_;
  bool unscale_;
  std::vector<at::Tensor> parameters_;
  std::vector<optim::PreparedOptimizer> optimizers_;
};

std::optional<config::AutocastKwargs> autocast_kwargs_from(Arguments given) {
  const bool is_given = given.has("enabled") || given.has("cache_enabled");
  const config::AutocastKwargs kwargs{.enabled = given.flag("enabled", true),
                                      .cache_enabled = given.optional_flag("cache_enabled")};
  given.finish();
  return is_given ? std::optional(kwargs) : std::nullopt;
}

std::string word_of(const at::Tensor& tensor) { return std::string(value::dtype_name(tensor.scalar_type())); }

// What a product of float32 matrices comes out as.
std::string product_dtype() {
  const auto matrix = at::ones({2, 2}, at::kFloat);
  return word_of(at::matmul(matrix, matrix));
}

}  // namespace

Json amp_scaler(Arguments& arguments, const Case& /*of*/) {
  const auto kwargs = scaler_kwargs_from(arguments);
  const auto num_optimizers = arguments.integer("optimizers", 1);
  const bool unscale = arguments.flag("unscale", false);
  const auto steps = gradients_from(arguments, num_optimizers);
  arguments.finish();

  ScaledSteps run(kwargs, num_optimizers, unscale);
  auto outcomes = Json::array();
  for (const auto& gradients : steps) {
    const auto outcome = attempt([&] { return run.step(gradients); });
    if (outcome.contains("error")) {
      outcomes.push_back({{"failed", outcome["error"]}});
      break;
    }
    outcomes.push_back(outcome);
  }
  return {{"steps", std::move(outcomes)}};
}

Json amp_autocast(Arguments& arguments, const Case& /*of*/) {
  auto options = constructor_options_from(arguments.object("accelerator"));
  auto given = arguments.object("model");
  const auto from = model_from(given);
  const auto input = arguments.value("input");
  if (!input.is_tensor()) arguments.refuse("input", "a tensor");
  if (const auto handler = autocast_kwargs_from(arguments.object("handler"))) {
    options.kwargs_handlers.emplace_back(*handler);
  }
  const auto block = autocast_kwargs_from(arguments.object("block"));
  arguments.finish();

  Accelerator accelerator(options);
  const auto model = accelerator.prepare(from.model);
  Json result = {{"output", value::to_json(model(input.tensor(), 0))}};
  result["param_dtype"] = word_of(model->parameters().front());
  {
    const auto scope = block ? accelerator.autocast(*block) : accelerator.autocast();
    result["block_dtype"] = product_dtype();
  }
  result["outer_dtype"] = product_dtype();
  result["native_amp"] = accelerator.native_amp();
  result["scaler"] = accelerator.scaler() != nullptr;
  return result;
}

}  // namespace lockstep::conformance
