#include "lockstep/optim/one_cycle_lr.h"

#include <fmt/format.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <numbers>

#include "lockstep/base/error.h"
#include "lockstep/optim/learning_rates.h"

namespace lockstep::optim {
namespace {

using torch::optim::OptimizerOptions;

// Where an optimizer's options keep their momentum: Adam's is the first of its betas.
struct Momentum {
  double value;
  std::function<void(double)> set;
};

template <typename Options>
std::optional<Momentum> plain_momentum(OptimizerOptions& options) {
  auto* known = dynamic_cast<Options*>(&options);
  if (known == nullptr) return std::nullopt;
  return Momentum{known->momentum(), [known](double value) { known->momentum(value); }};
}

template <typename Options>
std::optional<Momentum> first_beta(OptimizerOptions& options) {
  auto* known = dynamic_cast<Options*>(&options);
  if (known == nullptr) return std::nullopt;
  return Momentum{std::get<0>(known->betas()), [known](double value) { std::get<0>(known->betas()) = value; }};
}

std::optional<Momentum> momentum_of(OptimizerOptions& options) {
  if (auto found = plain_momentum<torch::optim::SGDOptions>(options)) return found;
  if (auto found = plain_momentum<torch::optim::RMSpropOptions>(options)) return found;
  if (auto found = first_beta<torch::optim::AdamOptions>(options)) return found;
  return first_beta<torch::optim::AdamWOptions>(options);
}

std::vector<double> per_group(const PerGroup& given, std::size_t num_groups, const char* name) {
  if (const auto* one = std::get_if<double>(&given)) return std::vector<double>(num_groups, *one);
  const auto& list = std::get<std::vector<double>>(given);
  if (list.size() == num_groups) return list;
  throw InvalidArgument({.where = fmt::format("OneCycleLr({})", name),
                         .expected = fmt::format("a value for each of {} parameter groups", num_groups),
                         .got = fmt::format("{}", list.size()),
                         .fix = "Pass a single number to use it for all groups."});
}

std::int64_t steps_of(const OneCycleOptions& options) {
  const bool by_epochs = !options.total_steps && options.epochs && options.steps_per_epoch;
  const auto positive = [](std::optional<std::int64_t> count) { return count && *count > 0; };
  const bool is_given =
      by_epochs ? positive(options.epochs) && positive(options.steps_per_epoch) : positive(options.total_steps);
  if (is_given) return by_epochs ? *options.epochs * *options.steps_per_epoch : *options.total_steps;
  throw InvalidArgument({.where = "OneCycleLr",
                         .expected = "a positive total_steps, or positive epochs and steps_per_epoch",
                         .got = options.total_steps ? fmt::format("total_steps {}", *options.total_steps) : "neither",
                         .fix = "Pass total_steps, or both epochs and steps_per_epoch."});
}

std::vector<double> divided(std::vector<double> numbers, double divisor) {
  for (auto& number : numbers) number /= divisor;
  return numbers;
}

}  // namespace

OneCycleLr::OneCycleLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const OneCycleOptions& options)
    : optimizer_(std::move(optimizer)),
      total_steps_(steps_of(options)),
      pct_start_(options.pct_start),
      three_phase_(options.three_phase),
      annealing_(options.anneal_strategy == Annealing::cos ? "cos" : "linear"),
      cycle_momentum_(options.cycle_momentum) {
  require_what_is_needed();
  const auto num_groups = optimizer_->param_groups().size();
  const auto peak = per_group(options.max_lr, num_groups, "max_lr");
  const auto start_rates = divided(peak, options.div_factor);
  rates_ = {start_rates, peak, divided(start_rates, options.final_div_factor)};
  const auto high = per_group(options.max_momentum, num_groups, "max_momentum");
  momentums_ = {high, per_group(options.base_momentum, num_groups, "base_momentum"), high};
  set_initial_learning_rates(optimizer_, start_rates);
  start();
}

void OneCycleLr::require_what_is_needed() const {
  if (pct_start_ < 0 || pct_start_ > 1) {
    throw InvalidArgument({.where = "OneCycleLr(pct_start)",
                           .expected = "a share from 0 to 1",
                           .got = fmt::format("{}", pct_start_),
                           .fix = "Pass the part of all steps in which the rate rises, 0.3 by default."});
  }
  if (cycle_momentum_ && !momentum_of(optimizer_->defaults())) {
    throw InvalidArgument({.where = "OneCycleLr(cycle_momentum)",
                           .expected = "an optimizer with a momentum or betas",
                           .got = "one that has neither",
                           .fix = "Pass cycle_momentum=false."});
  }
}

std::vector<double> OneCycleLr::last_learning_rates() const { return learning_rates(*optimizer_); }

std::vector<double> OneCycleLr::last_momentums() const {
  std::vector<double> momentums;
  for (auto& group : optimizer_->param_groups()) {
    if (const auto momentum = momentum_of(group.options())) momentums.push_back(momentum->value);
  }
  return momentums;
}

std::vector<double> OneCycleLr::phase_ends() const {
  const auto total = static_cast<double>(total_steps_);
  const auto top = pct_start_ * total - 1;
  if (!three_phase_) return {top, total - 1};
  return {top, 2 * pct_start_ * total - 2, total - 1};
}

OneCycleLr::Place OneCycleLr::place_of(std::int64_t position) const {
  const auto ends = phase_ends();
  const auto here = static_cast<double>(position);
  std::size_t phase = 0;
  while (phase + 1 < ends.size() && here > ends[phase]) ++phase;
  const auto begin = phase == 0 ? 0.0 : ends[phase - 1];
  if (ends[phase] == begin) {
    throw InvalidArgument({.where = fmt::format("OneCycleLr at position {}", position),
                           .expected = "phases of at least one step",
                           .got = fmt::format("pct_start {} of {} steps", pct_start_, total_steps_),
                           .fix = "Choose pct_start so that the rise has a step, and the fall too."});
  }
  return {.phase = phase, .share = (here - begin) / (ends[phase] - begin)};
}

double OneCycleLr::annealed(double from, double to, double share) const {
  if (annealing_ == "linear") return (to - from) * share + from;
  return to + (from - to) / 2.0 * (std::cos(std::numbers::pi * share) + 1);
}

std::vector<double> OneCycleLr::values_at(const Course& course, const Place& place) const {
  const std::vector<const std::vector<double>*> corners =
      three_phase_ ? std::vector{&course.start, &course.peak, &course.start, &course.end}
                   : std::vector{&course.start, &course.peak, &course.end};
  std::vector<double> values;
  for (std::size_t i = 0; i < course.start.size(); ++i) {
    values.push_back(annealed((*corners[place.phase])[i], (*corners[place.phase + 1])[i], place.share));
  }
  return values;
}

void OneCycleLr::advance(std::optional<double> /*metric*/) {
  if (last_epoch() > total_steps_) {
    throw InvalidArgument(
        {.where = "OneCycleLr",
         .expected = fmt::format("at most total_steps = {} steps", total_steps_),
         .got = fmt::format("step {}", last_epoch()),
         .fix = "Count all optimizer steps of the training into total_steps; a prepared schedule takes one per rank."});
  }
  const auto place = place_of(last_epoch());
  set_learning_rates(*optimizer_, values_at(rates_, place));
  if (!cycle_momentum_) return;
  const auto momentums = values_at(momentums_, place);
  auto& groups = optimizer_->param_groups();
  for (std::size_t i = 0; i < momentums.size(); ++i) momentum_of(groups[i].options())->set(momentums[i]);
}

void OneCycleLr::visit(StateFields& fields) {
  fields("total_steps", total_steps_);
  fields("_anneal_func_type", annealing_);
  fields("cycle_momentum", cycle_momentum_);
  fields("pct_start", pct_start_);
  fields("three_phase", three_phase_);
  fields("base_lrs", rates_.start);
  fields("max_lrs", rates_.peak);
  fields("min_lrs", rates_.end);
  fields("base_momentums", momentums_.peak);
  fields("max_momentums", momentums_.start);
  if (fields.is_reading()) momentums_.end = momentums_.start;
}

}  // namespace lockstep::optim
