// LibTorch's schedulers as ours.
#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/learning_rates.h"
#include "lockstep/optim/scheduler.h"

namespace lockstep::optim {
namespace {

/// Names the protected member by which LibTorch's schedulers read the rates of an optimizer that they do not show.
struct Rates : torch::optim::LRScheduler {
  static std::vector<double> of(const torch::optim::LRScheduler& scheduler) {
    return (scheduler.*&Rates::get_current_lrs)();
  }
};

[[noreturn]] void refuse_state() {
  throw NotSupported({.where = "the state of a scheduler of LibTorch",
                      .expected = "a schedule that shows its state",
                      .got = "one that keeps it to itself",
                      .fix = "Use the schedule of the same name in lockstep::optim."});
}

class TorchScheduler final : public Scheduler {
 public:
  TorchScheduler(std::shared_ptr<torch::optim::LRScheduler> scheduler,
                 std::shared_ptr<torch::optim::Optimizer> optimizer)
      : optimizer_(std::move(optimizer)), scheduler_(std::move(scheduler)) {}

  std::vector<double> last_learning_rates() const override { return Rates::of(*scheduler_); }
  const torch::optim::Optimizer* optimizer() const override { return optimizer_.get(); }
  void restart() override {
    throw NotSupported({.where = "a scheduler of LibTorch",
                        .expected = "a schedule that can return to its start",
                        .got = "one that only goes on",
                        .fix = "Use the schedule of the same name in lockstep::optim."});
  }

 private:
  void advance(std::optional<double> /*metric*/) override { scheduler_->step(); }
  void visit(StateFields& /*fields*/) override { refuse_state(); }

  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::shared_ptr<torch::optim::LRScheduler> scheduler_;
};

class PlateauScheduler final : public Scheduler {
 public:
  PlateauScheduler(std::shared_ptr<torch::optim::ReduceLROnPlateauScheduler> scheduler,
                   std::shared_ptr<torch::optim::Optimizer> optimizer)
      : optimizer_(std::move(optimizer)), scheduler_(std::move(scheduler)) {}

  std::vector<double> last_learning_rates() const override { return learning_rates(*optimizer_); }
  const torch::optim::Optimizer* optimizer() const override { return optimizer_.get(); }
  bool needs_metric() const override { return true; }

 private:
  void visit(StateFields& /*fields*/) override { refuse_state(); }
  void advance(std::optional<double> metric) override {
    if (!metric) {
      throw InvalidArgument({.where = "step() of ReduceLROnPlateauScheduler",
                             .expected = "the metric that it watches",
                             .got = "none",
                             .fix = "Call step(metric), with the validation loss for example."});
    }
    scheduler_->step(static_cast<float>(*metric));
  }

  std::shared_ptr<torch::optim::Optimizer> optimizer_;
  std::shared_ptr<torch::optim::ReduceLROnPlateauScheduler> scheduler_;
};

}  // namespace

std::shared_ptr<Scheduler> from_torch(std::shared_ptr<torch::optim::LRScheduler> scheduler,
                                      std::shared_ptr<torch::optim::Optimizer> optimizer) {
  return std::make_shared<TorchScheduler>(std::move(scheduler), std::move(optimizer));
}

std::shared_ptr<Scheduler> from_torch(std::shared_ptr<torch::optim::ReduceLROnPlateauScheduler> scheduler,
                                      std::shared_ptr<torch::optim::Optimizer> optimizer) {
  return std::make_shared<PlateauScheduler>(std::move(scheduler), std::move(optimizer));
}

}  // namespace lockstep::optim
