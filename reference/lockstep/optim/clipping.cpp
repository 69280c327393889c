#include "lockstep/optim/clipping.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The gradients, those of one device and dtype together: what a fused kernel takes in one launch.
std::vector<Tensors> grouped_gradients(const Tensors& parameters) {
  std::vector<Tensors> groups;
  for (const auto& parameter : parameters) {
    const auto& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    const auto alike = [&gradient](const Tensors& group) {
      return group.front().device() == gradient.device() && group.front().scalar_type() == gradient.scalar_type();
    };
    const auto group = std::find_if(groups.begin(), groups.end(), alike);
    if (group == groups.end()) {
      groups.push_back({gradient});
    } else {
      group->push_back(gradient);
    }
  }
  return groups;
}

void require(bool condition, const char* where, const char* expected, double got) {
  if (condition) return;
  throw InvalidArgument({.where = where,
                         .expected = expected,
                         .got = fmt::format("{}", got),
                         .fix = "Pass infinity to measure gradients without changing them."});
}

/// The norm of the norms. @return [], on the first group's device
at::Tensor total_norm(const std::vector<Tensors>& groups, double norm_type) {
  Tensors norms;
  for (const auto& group : groups) {
    for (const auto& norm : at::_foreach_norm(group, norm_type)) {
      norms.push_back(norm.to(groups.front().front().device()));
    }
  }
  return at::linalg_vector_norm(at::stack(norms), norm_type);
}

}  // namespace

double clip_grad_norm_(const Tensors& parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
  require(max_norm >= 0, "clip_grad_norm_(max_norm)", "0 or more", max_norm);
  require(!std::isnan(norm_type), "clip_grad_norm_(norm_type)", "a number or infinity", norm_type);
  const at::NoGradGuard no_grad;
  const auto groups = grouped_gradients(parameters);
  if (groups.empty()) return 0.0;
  const auto norm = total_norm(groups, norm_type);
  if (error_if_nonfinite && !std::isfinite(norm.item<double>())) {
    throw RuntimeError(
        {.where = "clip_grad_norm_(error_if_nonfinite=true)",
         .expected = "finite gradients",
         .got = fmt::format("a total norm of {}", norm.item<double>()),
         .fix = "Look for the overflow, or let error_if_nonfinite be false to scale them all the same."});
  }
  // The scale stays a tensor until the gradients are scaled, so that a GPU is not waited for before.
  const auto scale = at::clamp(at::reciprocal(norm + 1e-6) * max_norm, /*min=*/std::nullopt, /*max=*/1.0);
  for (const auto& group : groups) at::_foreach_mul_(group, scale.to(group.front().device()));
  return norm.item<double>();
}

void clip_grad_value_(const Tensors& parameters, double clip_value) {
  require(clip_value >= 0, "clip_grad_value_(clip_value)", "0 or more", clip_value);
  const at::NoGradGuard no_grad;
  for (const auto& group : grouped_gradients(parameters)) {
    at::_foreach_clamp_min_(group, -clip_value);
    at::_foreach_clamp_max_(group, clip_value);
  }
}

}  // namespace lockstep::optim
