#include "lockstep/optim/schedules.h"

#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <cmath>
#include <numbers>

#include "lockstep/base/error.h"
#include "lockstep/optim/learning_rates.h"

namespace lockstep::optim {
namespace {

constexpr double kPi = std::numbers::pi;

void require(bool holds, const char* where, const char* expected, double got) {
  if (!holds) throw InvalidArgument({.where = where, .expected = expected, .got = fmt::format("{}", got)});
}

void require_positive(std::int64_t number, const char* where) {
  require(number > 0, where, "a positive number of steps", static_cast<double>(number));
}

}  // namespace

RateSchedule::RateSchedule(std::shared_ptr<torch::optim::Optimizer> optimizer)
    : optimizer_(std::move(optimizer)), base_learning_rates_(initial_learning_rates(optimizer_)) {}

std::vector<double> RateSchedule::last_learning_rates() const { return learning_rates(*optimizer_); }

void RateSchedule::advance(std::optional<double> /*metric*/) {
  auto rates = learning_rates(*optimizer_);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const bool came_later = i >= base_learning_rates_.size();
    rates[i] = next_rate(rates[i], came_later ? rates[i] : base_learning_rates_[i]);
  }
  set_learning_rates(*optimizer_, rates);
}

void RateSchedule::return_to_start() {
  std::vector<double> rates;
  for (const auto base : base_learning_rates_) rates.push_back(first_rate(base));
  set_learning_rates(*optimizer_, rates);
}

void RateSchedule::visit(StateFields& fields) { fields("base_lrs", base_learning_rates_); }

ConstantLr::ConstantLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const ConstantLrOptions& options)
    : RateSchedule(std::move(optimizer)), options_(options) {
  require(options.factor >= 0 && options.factor <= 1, "ConstantLr(factor)", "a factor from 0 to 1", options.factor);
  start();
}

double ConstantLr::next_rate(double rate, double /*base*/) const {
  if (last_epoch() == 0) return rate * options_.factor;
  if (last_epoch() != options_.total_iters) return rate;
  require(options_.factor != 0, "ConstantLr at position total_iters", "a factor above 0, to undo it", options_.factor);
  return rate * (1.0 / options_.factor);
}

double ConstantLr::first_rate(double base) const { return options_.total_iters > 0 ? base * options_.factor : base; }

void ConstantLr::visit(StateFields& fields) {
  fields("factor", options_.factor);
  fields("total_iters", options_.total_iters);
  RateSchedule::visit(fields);
}

LinearLr::LinearLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const LinearLrOptions& options)
    : RateSchedule(std::move(optimizer)), options_(options) {
  const auto start_factor = options.start_factor, end_factor = options.end_factor;
  require(start_factor > 0 && start_factor <= 1, "LinearLr(start_factor)", "a factor above 0, up to 1", start_factor);
  require(end_factor >= 0 && end_factor <= 1, "LinearLr(end_factor)", "a factor from 0 to 1", end_factor);
  start();
}

double LinearLr::next_rate(double rate, double /*base*/) const {
  if (last_epoch() == 0) return rate * options_.start_factor;
  if (last_epoch() > options_.total_iters) return rate;
  const auto rise = options_.end_factor - options_.start_factor;
  const auto before =
      static_cast<double>(options_.total_iters) * options_.start_factor + static_cast<double>(last_epoch() - 1) * rise;
  return rate * (1.0 + rise / before);
}

void LinearLr::visit(StateFields& fields) {
  fields("start_factor", options_.start_factor);
  fields("end_factor", options_.end_factor);
  fields("total_iters", options_.total_iters);
  RateSchedule::visit(fields);
}

StepLr::StepLr(std::shared_ptr<torch::optim::Optimizer> optimizer, std::int64_t step_size, double gamma)
    : RateSchedule(std::move(optimizer)), step_size_(step_size), gamma_(gamma) {
  require_positive(step_size, "StepLr(step_size)");
  start();
}

double StepLr::next_rate(double rate, double /*base*/) const {
  return last_epoch() == 0 || last_epoch() % step_size_ != 0 ? rate : rate * gamma_;
}

void StepLr::visit(StateFields& fields) {
  fields("step_size", step_size_);
  fields("gamma", gamma_);
  RateSchedule::visit(fields);
}

MultiStepLr::MultiStepLr(std::shared_ptr<torch::optim::Optimizer> optimizer,
                         const std::vector<std::int64_t>& milestones, double gamma)
    : RateSchedule(std::move(optimizer)), gamma_(gamma) {
  for (const auto milestone : milestones) ++milestones_[milestone];
  start();
}

double MultiStepLr::times_gamma(double rate, std::int64_t position) const {
  const auto found = milestones_.find(position);
  return found == milestones_.end() ? rate : rate * std::pow(gamma_, found->second);
}

double MultiStepLr::next_rate(double rate, double /*base*/) const { return times_gamma(rate, last_epoch()); }

double MultiStepLr::first_rate(double base) const {
  auto rate = base;
  for (const auto& [milestone, times] : milestones_) {
    if (milestone <= 0) rate *= std::pow(gamma_, times);
  }
  return rate;
}

void MultiStepLr::visit(StateFields& fields) {
  fields("milestones", milestones_);
  fields("gamma", gamma_);
  RateSchedule::visit(fields);
}

ExponentialLr::ExponentialLr(std::shared_ptr<torch::optim::Optimizer> optimizer, double gamma)
    : RateSchedule(std::move(optimizer)), gamma_(gamma) {
  start();
}

double ExponentialLr::next_rate(double rate, double /*base*/) const { return is_beginning() ? rate : rate * gamma_; }

void ExponentialLr::visit(StateFields& fields) {
  fields("gamma", gamma_);
  RateSchedule::visit(fields);
}

PolynomialLr::PolynomialLr(std::shared_ptr<torch::optim::Optimizer> optimizer, const PolynomialLrOptions& options)
    : RateSchedule(std::move(optimizer)), options_(options) {
  start();
}

double PolynomialLr::next_rate(double rate, double /*base*/) const {
  if (is_beginning() || last_epoch() > options_.total_iters) return rate;
  const auto total = static_cast<double>(options_.total_iters);
  const auto left = 1.0 - static_cast<double>(last_epoch()) / total;
  const auto left_before = 1.0 - static_cast<double>(last_epoch() - 1) / total;
  return rate * std::pow(left / left_before, options_.power);
}

void PolynomialLr::visit(StateFields& fields) {
  fields("total_iters", options_.total_iters);
  fields("power", options_.power);
  RateSchedule::visit(fields);
}

CosineAnnealingLr::CosineAnnealingLr(std::shared_ptr<torch::optim::Optimizer> optimizer, std::int64_t t_max,
                                     double eta_min)
    : RateSchedule(std::move(optimizer)), t_max_(t_max), eta_min_(eta_min) {
  require_positive(t_max, "CosineAnnealingLr(t_max)");
  start();
}

double CosineAnnealingLr::next_rate(double rate, double base) const {
  if (is_beginning()) return rate;
  const auto half = static_cast<double>(t_max_);
  if ((last_epoch() - 1 - t_max_) % (2 * t_max_) == 0) {  // leaving the bottom, from which no factor leads up
    return rate + (base - eta_min_) * (1 - std::cos(kPi / half)) / 2;
  }
  const auto height = 1 + std::cos(kPi * static_cast<double>(last_epoch()) / half);
  const auto height_before = 1 + std::cos(kPi * static_cast<double>(last_epoch() - 1) / half);
  return height / height_before * (rate - eta_min_) + eta_min_;
}

void CosineAnnealingLr::visit(StateFields& fields) {
  fields("T_max", t_max_);
  fields("eta_min", eta_min_);
  RateSchedule::visit(fields);
}

}  // namespace lockstep::optim
