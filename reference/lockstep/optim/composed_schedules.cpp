#include "lockstep/optim/composed_schedules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/optim/learning_rates.h"

namespace lockstep::optim {
namespace {

using Schedulers = std::vector<std::shared_ptr<Scheduler>>;

void require_members(const Schedulers& schedulers, const char* where) {
  if (schedulers.empty()) {
    throw InvalidArgument({.where = where,
                           .expected = "at least one schedule",
                           .got = "none",
                           .fix = "Pass the schedules to be composed."});
  }
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    if (schedulers[i]->needs_metric()) {
      throw InvalidArgument({.where = fmt::format("{}, schedule {}", where, i),
                             .expected = "one that steps by itself",
                             .got = "a plateau schedule, which needs a metric in each step",
                             .fix = "Step a plateau schedule on its own, with its metric."});
    }
  }
}

void require_optimizer(const Schedulers& schedulers, const torch::optim::Optimizer* optimizer, const char* where) {
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    if (schedulers[i]->optimizer() != optimizer) {
      throw InvalidArgument({.where = fmt::format("{}, schedule {}", where, i),
                             .expected = "schedules of one optimizer",
                             .got = "one of another",
                             .fix = "Make all of them with the same optimizer."});
    }
  }
}

[[noreturn]] void refuse_restart(const char* what) {
  throw NotSupported({.where = fmt::format("{} as a later part of SequentialLr", what),
                      .expected = "a schedule that can return to its start",
                      .got = "one that is made of others",
                      .fix = "Let it stand first, or list its schedules and milestones one by one."});
}

void visit_members(StateFields& fields, const Schedulers& schedulers) {
  if (!fields.is_reading()) {
    std::vector<Value> states;
    for (const auto& scheduler : schedulers) states.push_back(scheduler->state_dict());
    return fields.write("_schedulers", Value::list(std::move(states)));
  }
  const auto* states = fields.read("_schedulers");
  if (states == nullptr) throw KeyError("the state of a composed schedule has no '_schedulers'");
  if (states->size() != schedulers.size()) {
    throw InvalidArgument({.where = "load_state_dict of a composed schedule",
                           .expected = fmt::format("the states of {} schedules", schedulers.size()),
                           .got = fmt::format("{}", states->size()),
                           .fix = "Compose as many schedules as when the state was saved."});
  }
  for (std::size_t i = 0; i < schedulers.size(); ++i) schedulers[i]->load_state_dict((*states)[i]);
}

}  // namespace

ChainedScheduler::ChainedScheduler(Schedulers schedulers) : schedulers_(std::move(schedulers)) {
  require_members(schedulers_, "ChainedScheduler");
  require_optimizer(schedulers_, schedulers_.front()->optimizer(), "ChainedScheduler");
}

std::vector<double> ChainedScheduler::last_learning_rates() const { return schedulers_.back()->last_learning_rates(); }

void ChainedScheduler::undo() {
  for (const auto& scheduler : schedulers_) scheduler->undo();
}

void ChainedScheduler::restart() { refuse_restart("ChainedScheduler"); }

void ChainedScheduler::advance(std::optional<double> /*metric*/) {
  for (const auto& scheduler : schedulers_) scheduler->step();
}

void ChainedScheduler::visit(StateFields& fields) { visit_members(fields, schedulers_); }

SequentialLr::SequentialLr(std::shared_ptr<torch::optim::Optimizer> optimizer, Schedulers schedulers,
                           std::vector<std::int64_t> milestones)
    : optimizer_(std::move(optimizer)), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  require_members(schedulers_, "SequentialLr");
  require_optimizer(schedulers_, optimizer_.get(), "SequentialLr");
  if (milestones_.size() + 1 != schedulers_.size()) {
    throw InvalidArgument({.where = "SequentialLr(milestones)",
                           .expected = fmt::format("{}, one less than schedules", schedulers_.size() - 1),
                           .got = fmt::format("{}", milestones_.size()),
                           .fix = "Give the step at which each schedule but the first begins."});
  }
  if (!std::ranges::is_sorted(milestones_)) {
    throw InvalidArgument({.where = "SequentialLr(milestones)",
                           .expected = "positions that do not fall",
                           .got = fmt::format("{}", fmt::join(milestones_, ", ")),
                           .fix = "Sort them, and the schedules with them."});
  }
  // Each schedule has set its position 0 when it was made; here only the first one's counts.
  set_learning_rates(*optimizer_, initial_learning_rates(optimizer_));
  for (const auto& scheduler : schedulers_) scheduler->undo();
  schedulers_.front()->begin();
}

std::vector<double> SequentialLr::last_learning_rates() const { return learning_rates(*optimizer_); }

void SequentialLr::undo() {
  for (const auto& scheduler : schedulers_) scheduler->undo();
}

void SequentialLr::restart() { refuse_restart("SequentialLr"); }

void SequentialLr::advance(std::optional<double> /*metric*/) {
  const auto next = std::ranges::upper_bound(milestones_, last_epoch()) - milestones_.begin();
  auto& scheduler = *schedulers_[static_cast<std::size_t>(next)];
  const bool starts_here = next > 0 && milestones_[static_cast<std::size_t>(next - 1)] == last_epoch();
  starts_here ? scheduler.restart() : scheduler.step();
}

void SequentialLr::visit(StateFields& fields) {
  fields("_milestones", milestones_);
  visit_members(fields, schedulers_);
}

}  // namespace lockstep::optim
