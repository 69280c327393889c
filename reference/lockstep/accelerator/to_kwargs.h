#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <variant>

#include "lockstep/config/kwargs_handlers.h"
#include "lockstep/value/value.h"

namespace lockstep {

namespace detail {

template <typename T>
Value option_value(const T& option) {
  return Value(option);
}
template <typename T>
Value option_value(const std::optional<T>& option) {
  return option ? Value(*option) : Value();
}
inline Value option_value(const config::OverrideLinearPrecision& precision) {
  return Value::tuple({precision.fprop, precision.dgrad, precision.wgrad});
}

}  // namespace detail

/// The options of a handler that differ from the defaults, by name, in the order of their declaration.
///
/// GradScalerKwargs{.init_scale = 65536, .growth_factor = 3} gives {"growth_factor": 3.0}; defaults give {}.
///
/// @clause AMP-006, KW-001, KW-006
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

inline Value to_kwargs(const config::KwargsHandler& handler) {
  return std::visit([](const auto& one) { return to_kwargs(one); }, handler);
}

}  // namespace lockstep
