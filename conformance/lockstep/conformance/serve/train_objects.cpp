#include "lockstep/conformance/serve/train_objects.h"

#include <algorithm>

#include "lockstep/conformance/serve/accelerator_case.h"

namespace lockstep::conformance {
namespace {

template <typename T>
const T& named(const std::vector<std::pair<std::string, T>>& things, const std::string& name) {
  const auto found = std::ranges::find(things, name, &std::pair<std::string, T>::first);
  if (found == things.end()) throw Unsupported("name " + name);
  return found->second;
}

TrainCase::Optimizer read_optimizer(Arguments& arguments, const TrainCase& of) {
  std::vector<at::Tensor> parameters;
  for (const auto& name : arguments.words("models")) {
    const auto own = named(of.models, name).model->parameters();
    parameters.insert(parameters.end(), own.begin(), own.end());
  }
  const bool prepare = arguments.flag("prepare", true);
  return {.counted = optimizer_from(arguments, std::move(parameters)), .prepare = prepare};
}

TrainCase::Scheduler read_scheduler(Arguments& arguments, const TrainCase& of) {
  const auto& optimizer = named(of.optimizers, arguments.word("optimizer")).counted.optimizer;
  const bool prepare = arguments.flag("prepare", true);
  return {.scheduler = scheduler_from(arguments, optimizer), .prepare = prepare};
}

TrainedModel served(const ModelCase& of, Accelerator& accelerator) {
  if (of.prepare) return accelerator.prepare(of.model);
  return {of.model, nullptr, accelerator.state().rank().account()};
}

}  // namespace

ServedOptimizer::ServedOptimizer(CountedOptimizer counted, bool prepare, Accelerator& accelerator)
    : counted_(std::move(counted)) {
  if (prepare) prepared_ = accelerator.prepare(counted_.optimizer);
}

void ServedOptimizer::step() const {
  if (prepared_) {
    prepared_->step();
  } else {
    counted_.optimizer->step();
  }
}

void ServedOptimizer::zero_grad(std::optional<bool> set_to_none) const {
  if (prepared_) {
    set_to_none ? prepared_->zero_grad(*set_to_none) : prepared_->zero_grad();
  } else {
    counted_.optimizer->zero_grad(set_to_none.value_or(true));
  }
}

ServedScheduler::ServedScheduler(std::shared_ptr<optim::Scheduler> scheduler, bool prepare, Accelerator& accelerator)
    : scheduler_(std::move(scheduler)) {
  if (prepare) prepared_ = accelerator.prepare(scheduler_);
}

TrainCase::TrainCase(Arguments& arguments) : options(accelerator_options_from(arguments)) {
  for (auto& [name, model] : arguments.named_objects("models")) models.emplace_back(name, model_from(model));
  for (auto& [name, optimizer] : arguments.named_objects("optimizers")) {
    optimizers.emplace_back(name, read_optimizer(optimizer, *this));
  }
  for (auto& [name, scheduler] : arguments.named_objects("schedulers")) {
    schedulers.emplace_back(name, read_scheduler(scheduler, *this));
  }
  loaders = loaders_from(arguments);
}

TrainObjects::TrainObjects(TrainCase from) : accelerator(from.options) {
  for (auto& [name, model] : from.models) models.add(name, served(model, accelerator));
  for (auto& [name, optimizer] : from.optimizers) {
    optimizers.add(name, ServedOptimizer(std::move(optimizer.counted), optimizer.prepare, accelerator));
  }
  for (auto& [name, scheduler] : from.schedulers) {
    schedulers.add(name, ServedScheduler(std::move(scheduler.scheduler), scheduler.prepare, accelerator));
  }
  loaders = ServedLoaders(std::move(from.loaders), accelerator);
}

}  // namespace lockstep::conformance
