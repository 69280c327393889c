#include "lockstep/accelerator/local_sgd.h"

#include <fmt/format.h>

#include <exception>

#include "lockstep/base/error.h"

namespace lockstep {
namespace {

std::int64_t checked_steps(std::int64_t steps) {
  if (steps >= 1) return steps;
  throw InvalidArgument({.where = "LocalSgd(local_sgd_steps)",
                         .expected = "at least 1",
                         .got = fmt::format("{}", steps),
                         .fix = "Pass 1 to average after every step, or enabled=false not to."});
}

}  // namespace

LocalSgd::LocalSgd(Accelerator& accelerator, modules::ModelEngine* engine, std::vector<at::Tensor> parameters,
                   const LocalSgdOptions& options)
    : accelerator_(accelerator),
      parameters_(std::move(parameters)),
      local_sgd_steps_(checked_steps(options.local_sgd_steps)),
      enabled_(options.enabled && accelerator.use_distributed()),
      exceptions_at_start_(std::uncaught_exceptions()),
      gradients_stay_local_(std::in_place, std::vector{enabled_ ? engine : nullptr}, /*synchronise=*/false) {}

LocalSgd::~LocalSgd() noexcept(false) {
  if (std::uncaught_exceptions() == exceptions_at_start_) finish();
}

void LocalSgd::finish() {
  if (!gradients_stay_local_) return;
  gradients_stay_local_.reset();
  if (enabled_) average();
}

void LocalSgd::step() {
  if (!gradients_stay_local_) {
    throw RuntimeError({.where = "LocalSgd::step",
                        .expected = "a scope that has not ended",
                        .got = "a call after finish()",
                        .fix = "Make another LocalSgd to go on."});
  }
  ++num_steps_;
  if (enabled_ && num_steps_ % local_sgd_steps_ == 0) average();
}

void LocalSgd::average() const {
  const at::NoGradGuard no_grad;
  for (auto parameter : parameters_) {
    parameter.copy_(accelerator_.reduce(parameter.detach(), comm::Reduction::mean).tensor());
  }
}

}  // namespace lockstep
