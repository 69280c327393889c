#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "lockstep/config/kwargs_handlers.h"
#include "lockstep/value/value.h"

namespace lockstep {

namespace detail {

template <typename T>
Value option_value(const T& option) {
  return Value(option);
}
inline Value option_value(const std::vector<std::string>& words) { return Value::list({words.begin(), words.end()}); }
inline Value option_value(const config::ProfileSchedule& schedule) {
  auto steps = Value::dict({});
  if (schedule.wait) steps.set("wait", *schedule.wait);
  if (schedule.warmup) steps.set("warmup", *schedule.warmup);
  if (schedule.active) steps.set("active", *schedule.active);
  steps.set("repeat", schedule.repeat);
  steps.set("skip_first", schedule.skip_first);
  return steps;
}
template <typename T>
Value option_value(const std::optional<T>& option) {
  return option ? option_value(*option) : Value();
}
inline Value option_value(const config::OverrideLinearPrecision& precision) {
  return Value::tuple({precision.fprop, precision.dgrad, precision.wgrad});
}

}  // namespace detail

/// The options of a handler that differ from the defaults, by name, in the order of their declaration.
///
/// GradScalerKwargs{.init_scale = 65536, .growth_factor = 3} gives {"growth_factor": 3.0}; defaults give {}.
///
/// @clause AMP-006, KW-001, KW-005, KW-006
/// @source Accelerate, KwargsHandler.to_kwargs
template <typename Handler>
Value to_kwargs(const Handler& handler) {
  const Handler standard;
  auto kwargs = Value::dict({});
  const auto add_if_given = [&](const auto& field) {
    const auto& option = handler.*field.member;
    if (option != standard.*field.member) kwargs.set(field.name, detail::option_value(option));
  };
  std::apply([&](const auto&... field) { (add_if_given(field), ...); }, fields_of(handler));
  return kwargs;
}

/// The timeout is in seconds, and what stands for none differs from one backend to the other.
/// @clause KW-014
inline Value to_kwargs(const config::InitProcessGroupKwargs& handler) {
  const config::InitProcessGroupKwargs standard;
  auto kwargs = Value::dict({});
  if (handler.backend != standard.backend) kwargs.set("backend", detail::option_value(handler.backend));
  if (handler.init_method) kwargs.set("init_method", *handler.init_method);
  if (handler.resolved_timeout() != standard.resolved_timeout())
    kwargs.set("timeout", std::chrono::duration<double>(handler.resolved_timeout()).count());
  return kwargs;
}

inline Value to_kwargs(const config::KwargsHandler& handler) {
  return std::visit([](const auto& one) { return to_kwargs(one); }, handler);
}

}  // namespace lockstep
