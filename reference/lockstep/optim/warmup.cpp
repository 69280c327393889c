#include "lockstep/optim/warmup.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::optim {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
}

}  // namespace

LrLambda constant_with_warmup(std::int64_t num_warmup_steps) {
  return
      [num_warmup_steps](std::int64_t step) { return step < num_warmup_steps ? ratio(step, num_warmup_steps) : 1.0; };
}

LrLambda linear_with_warmup(const WarmupSteps& steps) {
  return [steps](std::int64_t step) {
    const auto [warmup, total] = steps;
    return step < warmup ? ratio(step, warmup) : std::max(0.0, ratio(total - step, total - warmup));
  };
}

LrLambda cosine_with_warmup(const WarmupSteps& steps, double num_cycles) {
  return [steps, num_cycles](std::int64_t step) {
    const auto [warmup, total] = steps;
    if (step < warmup) return ratio(step, warmup);
    const auto progress = ratio(step - warmup, total - warmup);
    return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * num_cycles * 2.0 * progress)));
  };
}

}  // namespace lockstep::optim
