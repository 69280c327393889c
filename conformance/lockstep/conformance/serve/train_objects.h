#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/conformance/serve/models.h"
#include "lockstep/conformance/serve/optimizers.h"
#include "lockstep/conformance/serve/served_loader.h"

namespace lockstep::conformance {

/// An optimizer of the case, prepared or used as it is.
class ServedOptimizer {
 public:
  ServedOptimizer(CountedOptimizer counted, bool prepare, Accelerator& accelerator);

  void step() const;
  /// @param set_to_none  none: not passed
  void zero_grad(std::optional<bool> set_to_none) const;
  [[nodiscard]] bool step_was_skipped() const { return prepared_ && prepared_->step_was_skipped(); }
  /// How often the optimizer itself has stepped.
  [[nodiscard]] std::int64_t num_steps() const { return *counted_.num_steps; }

 private:
  CountedOptimizer counted_;
  std::shared_ptr<optim::PreparedOptimizer> prepared_;
};

/// A schedule of the case, prepared or used as it is.
class ServedScheduler {
 public:
  ServedScheduler(std::shared_ptr<optim::Scheduler> scheduler, bool prepare, Accelerator& accelerator);

  void step() const { prepared_ ? prepared_->step() : scheduler_->step(); }
  [[nodiscard]] std::vector<double> learning_rates() const { return scheduler_->last_learning_rates(); }
  [[nodiscard]] std::int64_t position() const { return scheduler_->last_epoch(); }

 private:
  std::shared_ptr<optim::Scheduler> scheduler_;
  std::shared_ptr<optim::PreparedScheduler> prepared_;
};

/// Things with names, in the order of the case.
template <typename T>
class Named {
 public:
  void add(std::string name, T thing) { things_.emplace_back(std::move(name), std::move(thing)); }
  [[nodiscard]] const std::vector<std::pair<std::string, T>>& all() const noexcept { return things_; }
  /// @param name  none: the first one
  /// @throws Unsupported  for a name that the case does not have
  [[nodiscard]] const T& find(const std::optional<std::string>& name) const {
    for (const auto& [known, thing] : things_) {
      if (!name || known == *name) return thing;
    }
    throw Unsupported("name " + name.value_or("(none of this kind in the case)"));
  }

 private:
  std::vector<std::pair<std::string, T>> things_;
};

using TrainedModel = modules::Prepared<Model>;

/// The objects of a training program as its author wrote them, before they are prepared.
struct TrainCase {
  /// Reads models, optimizers, schedulers, loaders and the Accelerator's options, and makes all but the last.
  explicit TrainCase(Arguments& arguments);

  AcceleratorOptions options;
  std::vector<std::pair<std::string, ModelCase>> models;
  struct Optimizer {
    CountedOptimizer counted;
    bool prepare;
  };
  std::vector<std::pair<std::string, Optimizer>> optimizers;
  struct Scheduler {
    std::shared_ptr<optim::Scheduler> scheduler;
    bool prepare;
  };
  std::vector<std::pair<std::string, Scheduler>> schedulers;
  std::vector<std::pair<std::string, LoaderCase>> loaders;
};

/// What a training program works with, prepared in the order of the protocol: models, optimizers, schedulers, loaders.
struct TrainObjects {
  explicit TrainObjects(TrainCase from);

  Accelerator accelerator;
  Named<TrainedModel> models;
  Named<ServedOptimizer> optimizers;
  Named<ServedScheduler> schedulers;
  ServedLoaders loaders;
};

}  // namespace lockstep::conformance
