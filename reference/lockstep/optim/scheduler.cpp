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

void Scheduler::start() {
  last_epoch_ = -1;
  begin();
}

void Scheduler::begin() {
  step_count_ = 0;
  is_beginning_ = true;
  step();
  is_beginning_ = false;
}

void Scheduler::restart() {
  last_epoch_ = 0;
  return_to_start();
}

void Scheduler::visit_all(StateFields& fields) {
  fields("last_epoch", last_epoch_);
  fields("_step_count", step_count_);
  visit(fields);
}

Value Scheduler::state_dict() const {
  auto fields = StateFields::to_write();
  const_cast<Scheduler*>(this)->visit_all(fields);  // which only reads them then
  auto state = fields.written();
  state.set("_last_lr", Value::list_of(last_learning_rates()));
  return state;
}

void Scheduler::load_state_dict(const Value& state) {
  static_cast<void>(state["last_epoch"]);  // throws without it
  const auto before = state_dict();
  const auto take = [this](const Value& from) {
    auto fields = StateFields::to_read(from);
    visit_all(fields);
  };
  try {
    take(state);
  } catch (...) {
    take(before);
    throw;
  }
}

LambdaLr::LambdaLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const LrLambda& lambda)
    : LambdaLr(optimizer, std::vector<LrLambda>(optimizer->param_groups().size(), lambda)) {}

LambdaLr::LambdaLr(std::shared_ptr<torch::optim::Optimizer> optimizer, std::vector<LrLambda> lambdas)
    : optimizer_(std::move(optimizer)),
      base_learning_rates_(initial_learning_rates(optimizer_)),
      lambdas_(std::move(lambdas)) {
  if (lambdas_.size() != base_learning_rates_.size()) {
    throw InvalidArgument(
        {.where = "LambdaLr",
         .expected = fmt::format("a lambda for each of {} parameter groups", base_learning_rates_.size()),
         .got = fmt::format("{}", lambdas_.size()),
         .fix = "Pass a single lambda to use it for all groups."});
  }
  start();
}

std::vector<double> LambdaLr::last_learning_rates() const { return learning_rates(*optimizer_); }

void LambdaLr::advance(std::optional<double> /*metric*/) {
  auto rates = base_learning_rates_;
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] *= lambdas_[i](last_epoch());
  set_learning_rates(*optimizer_, rates);
}

void LambdaLr::visit(StateFields& fields) { fields("base_lrs", base_learning_rates_); }

}  // namespace lockstep::optim
