#include "lockstep/conformance/serve/case_state.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DefaultDtype.h>

#include <chrono>

#include "lockstep/base/logging.h"
#include "lockstep/random/seeding.h"
#include "lockstep/state/partial_state.h"
#include "lockstep/state/placement.h"

namespace lockstep::conformance {
namespace {

constexpr auto kLongerThanAnyCase = std::chrono::hours(24);
constexpr auto kDebugMode = "ACCELERATE_DEBUG_MODE";

// LOCAL_RANK alone would make a world of one distributed.
state::Environment session_environment() {
  auto environment = state::Environment::of_process();
  if (environment.number("WORLD_SIZE").value_or(1) > 1) return environment;
  for (const auto& name : state::rank_variables()) environment.unset(name);
  return environment;
}

state::Environment with(state::Environment environment,
                        const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) environment.set(name, value);
  return environment;
}

void switch_autocast_off() {
  for (const auto device : {at::kCPU, at::kCUDA}) at::autocast::set_autocast_enabled(device, false);
  at::autocast::set_autocast_cache_enabled(true);
  at::autocast::clear_cache();
}

}  // namespace

SessionRank::SessionRank()
    : environment_(session_environment()),
      world_(state::place(environment_, {.cpu = true}).world),
      rank_(state::RankContext::from(environment_)) {}

void SessionRank::meet() {
  if (world_.size == 1 || rank_->partial) return;
  const state::StateScope scope(rank_);
  const state::PartialState state({.cpu = true, .timeout = kLongerThanAnyCase});
}

std::shared_ptr<state::RankContext> SessionRank::new_rank(const state::Environment& environment) const {
  auto rank = state::RankContext::from(environment);
  if (!rank_->partial) return rank;
  rank->partial = std::make_shared<state::PartialStateData>(*rank_->partial);
  rank->partial->group = rank_->partial->group.with_debug(environment.flag(kDebugMode));
  rank->partial->is_reset = true;  // the ranks have met; the case's first PartialState finds them
  return rank;
}

void reset_process(std::int64_t seed) {
  switch_autocast_off();
  c10::GradMode::set_enabled(true);
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(c10::ScalarType::Float));
  random::set_seed(seed);
}

CaseScope::CaseScope(const SessionRank& session, const CaseStart& start)
    : scope_(session.new_rank(with(session.environment(), start.environment))) {
  reset_process(start.seed);
}

}  // namespace lockstep::conformance
