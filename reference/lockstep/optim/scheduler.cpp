#include "lockstep/optim/scheduler.h"

#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/learning_rates.h"

namespace lockstep::optim {

Scheduler::~Scheduler() = default;

void Scheduler::step(std::optional<double> metric) {
  ++step_count_;
  ++last_epoch_;
  advance(metric);
}

LambdaLr::LambdaLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const LrLambda& lambda)
    : LambdaLr(optimizer, std::vector<LrLambda>(optimizer->param_groups().size(), lambda)) {}

LambdaLr::LambdaLr(std::shared_ptr<torch::optim::Optimizer> optimizer, std::vector<LrLambda> lambdas)
    : optimizer_(std::move(optimizer)),
      base_learning_rates_(learning_rates(*optimizer_)),
      lambdas_(std::move(lambdas)) {
  if (lambdas_.size() != base_learning_rates_.size()) {
    throw InvalidArgument(
        {.where = "LambdaLr",
         .expected = fmt::format("a lambda for each of {} parameter groups", base_learning_rates_.size()),
         .got = fmt::format("{}", lambdas_.size()),
         .fix = "Pass a single lambda to use it for all groups."});
  }
  LambdaLr::advance(std::nullopt);
}

std::vector<double> LambdaLr::last_learning_rates() const { return learning_rates(*optimizer_); }

void LambdaLr::advance(std::optional<double> /*metric*/) {
  auto rates = base_learning_rates_;
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] *= lambdas_[i](last_epoch());
  set_learning_rates(*optimizer_, rates);
}

}  // namespace lockstep::optim
