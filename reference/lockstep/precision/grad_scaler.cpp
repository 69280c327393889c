#include "lockstep/precision/grad_scaler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/comm/operations.h"

namespace lockstep::precision {
namespace {

using GradientGroups = std::map<std::pair<std::string, c10::ScalarType>, std::vector<at::Tensor>>;

void require(bool condition, const char* option, const char* expected, double got) {
  if (condition) return;
  throw AssertionError({.where = fmt::format("GradScaler({})", option),
                        .expected = expected,
                        .got = fmt::format("{}", got),
                        .fix = "Leave it out for its default."});
}

const config::GradScalerKwargs& valid(const config::GradScalerKwargs& kwargs) {
  const auto is_float = [](double scale) { return scale > 0 && scale <= std::numeric_limits<float>::max(); };
  require(is_float(kwargs.init_scale), "init_scale", "a positive number that float32 holds", kwargs.init_scale);
  require(kwargs.growth_factor > 1, "growth_factor", "more than 1", kwargs.growth_factor);
  require(kwargs.backoff_factor > 0 && kwargs.backoff_factor < 1, "backoff_factor", "more than 0 and less than 1",
          kwargs.backoff_factor);
  require(kwargs.growth_interval >= 1, "growth_interval", "at least 1", kwargs.growth_interval);
  return kwargs;
}

// What the kernel takes in one call: dense tensors of one device and dtype.
GradientGroups groups_of_gradients(torch::optim::Optimizer& optimizer) {
  GradientGroups groups;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto& gradient = parameter.grad();
      if (!gradient.defined()) continue;
      if (gradient.scalar_type() == at::kHalf) {
        throw InvalidArgument({.where = "unscale_",
                               .expected = "gradients in float32",
                               .got = "float16",
                               .fix = "Keep the parameters in float32: autocast casts them where it helps."});
      }
      const auto elements = gradient.is_sparse() ? gradient._values() : gradient;
      groups[{gradient.device().str(), gradient.scalar_type()}].push_back(elements);
    }
  }
  return groups;
}

}  // namespace

GradScaler::GradScaler(const config::GradScalerKwargs& kwargs, c10::Device device, comm::ProcessGroup shards)
    : kwargs_(valid(kwargs)),
      shards_(std::move(shards)),
      scale_(at::scalar_tensor(kwargs.init_scale, at::TensorOptions(at::kFloat).device(device))),
      growth_tracker_(at::scalar_tensor(0, at::TensorOptions(at::kInt).device(device))) {}

void GradScaler::share_with(const torch::optim::Optimizer& optimizer) { progress_[&optimizer].is_awaited = true; }
void GradScaler::forget_optimizers() { progress_.clear(); }

at::Tensor GradScaler::scale(const at::Tensor& loss) {
  if (!is_enabled()) return loss;
  for (auto& [optimizer, progress] : progress_) {
    if (progress.stage == Stage::stepped) progress.stage = Stage::stepped_once;
  }
  gradient_scale_.reset();
  // A copy: backward needs the scale as it is now.
  return loss * scale_.to(loss.device(), scale_.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

at::Tensor GradScaler::unscale_gradients(torch::optim::Optimizer& optimizer) const {
  const at::NoGradGuard no_grad;
  const auto& carried = gradient_scale_.defined() ? gradient_scale_ : scale_;
  const auto inverse = carried.to(at::kDouble).reciprocal().to(at::kFloat);
  at::Tensor found_inf;
  for (const auto& [key, gradients] : groups_of_gradients(optimizer)) {
    const auto device = gradients.front().device();
    auto found_here = at::scalar_tensor(0, at::TensorOptions(at::kFloat).device(device));
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_here, inverse.to(device));
    found_here = found_here.to(scale_.device());
    found_inf = found_inf.defined() ? at::maximum(found_inf, found_here) : found_here;
  }
  if (!shards_) return found_inf;
  // A rank may hold no shard of any gradient; it takes part all the same.
  const auto mine = found_inf.defined() ? found_inf : at::zeros_like(scale_);
  return comm::reduce(mine, shards_, comm::Reduction::max).tensor();
}

void GradScaler::begin_again(Progress& progress) {
  if (progress.stage != Stage::stepped_once) return;
  // Its gradients, and those that other optimizers are about to unscale, were made under the scale as it is now.
  const auto carried = gradient_scale_.defined() ? gradient_scale_ : scale_.clone();
  end_iteration();
  gradient_scale_ = carried;
}

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (!is_enabled()) return;
  auto& progress = progress_[&optimizer];
  begin_again(progress);
  if (progress.stage != Stage::ready) {
    const bool has_stepped = progress.stage == Stage::stepped;
    throw RuntimeError({.where = "unscale_",
                        .expected = "gradients that carry the scale",
                        .got = has_stepped ? "a call after step(), without a new backward"
                                           : "a second call before the next step: it has already been called",
                        .fix = "Clip or unscale once per optimizer step: under accumulation, only where "
                               "sync_gradients is true."});
  }
  progress.found_inf = unscale_gradients(optimizer);
  progress.stage = Stage::unscaled;
}

bool GradScaler::step(torch::optim::Optimizer& optimizer, const optim::LossClosure& closure) {
  if (!is_enabled()) {
    optimizer.step(closure);
    return true;
  }
  if (closure) {
    throw NotSupported({.where = "step(closure)",
                        .expected = "no closure under a gradient scaler",
                        .got = "one, whose gradients nobody would unscale",
                        .fix = "Use bf16, or pass GradScalerKwargs with enabled=false."});
  }
  auto& progress = progress_[&optimizer];
  begin_again(progress);
  if (progress.stage == Stage::stepped) {
    throw RuntimeError({.where = "step",
                        .expected = "a backward or an update since the last step",
                        .got = "neither: step() has already been called",
                        .fix = "Call update() after each step(), and backward before it."});
  }
  if (progress.stage == Stage::ready) unscale_(optimizer);
  if (!progress.found_inf.defined()) {
    progress.stage = Stage::ready;  // as if this step had not been asked for
    throw AssertionError({.where = "step",
                          .expected = "a gradient to check for overflow",
                          .got = "no gradient on any parameter of the optimizer",
                          .fix = "Run backward before step."});
  }
  progress.stage = Stage::stepped;
  if (progress.found_inf.item<float>() > 0) return false;
  optimizer.step();
  return true;
}

bool GradScaler::all_have_stepped() const {
  return std::ranges::all_of(progress_, [](const auto& entry) {
    const auto& [is_awaited, stage, found_inf] = entry.second;
    return !is_awaited || stage == Stage::stepped || stage == Stage::stepped_once;
  });
}

void GradScaler::update() {
  if (is_enabled() && all_have_stepped()) end_iteration();
}

void GradScaler::end_iteration() {
  const at::NoGradGuard no_grad;
  auto found_inf = at::zeros_like(scale_);
  for (auto& [optimizer, progress] : progress_) {
    if (progress.found_inf.defined()) found_inf = at::maximum(found_inf, progress.found_inf);
    progress = {.is_awaited = progress.is_awaited};
  }
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf, kwargs_.growth_factor, kwargs_.backoff_factor,
                         kwargs_.growth_interval);
  gradient_scale_.reset();
}

double GradScaler::get_scale() const { return is_enabled() ? scale_.item<double>() : 1.0; }
int GradScaler::get_growth_tracker() const { return is_enabled() ? growth_tracker_.item<int>() : 0; }

Value GradScaler::state_dict() const {
  if (!is_enabled()) return Value::dict({});
  return Value::dict({{"scale", get_scale()},
                      {"growth_factor", kwargs_.growth_factor},
                      {"backoff_factor", kwargs_.backoff_factor},
                      {"growth_interval", kwargs_.growth_interval},
                      {"_growth_tracker", get_growth_tracker()}});
}

void GradScaler::load_state_dict(const Value& state) {
  if (!is_enabled()) return;
  if (state.size() == 0) {
    throw RuntimeError({.where = "GradScaler::load_state_dict",
                        .expected = "the state of an enabled scaler",
                        .got = "an empty one",
                        .fix = "It was saved from a scaler that was not enabled."});
  }
  auto loaded = kwargs_;
  loaded.init_scale = state["scale"].number();
  loaded.growth_factor = state["growth_factor"].number();
  loaded.backoff_factor = state["backoff_factor"].number();
  loaded.growth_interval = static_cast<int>(state["growth_interval"].integer());
  const auto growth_tracker = state["_growth_tracker"].integer();
  static_cast<void>(valid(loaded));  // and nothing is taken over from a state that is none
  scale_.fill_(loaded.init_scale);
  growth_tracker_.fill_(growth_tracker);
  loaded.init_scale = kwargs_.init_scale;
  kwargs_ = loaded;
}

}  // namespace lockstep::precision
