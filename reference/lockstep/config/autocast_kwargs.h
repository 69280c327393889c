#pragma once

#include <optional>
#include <tuple>

#include "lockstep/config/field.h"

namespace lockstep::config {

/// How forward, and the blocks under Accelerator::autocast, run in low precision.
///
/// @clause AMP-005, KW-004
/// @source Accelerate, AutocastKwargs; PyTorch, torch.autocast
struct AutocastKwargs {
  bool enabled = true;                ///< false: operations keep their inputs' dtype, also inside an active scope
  std::optional<bool> cache_enabled;  ///< keep the cast of a parameter until the outermost scope ends; none: as it is

  bool operator==(const AutocastKwargs&) const = default;
};

constexpr auto fields_of(const AutocastKwargs&) {
  return std::tuple{Field{"enabled", &AutocastKwargs::enabled}, Field{"cache_enabled", &AutocastKwargs::cache_enabled}};
}

}  // namespace lockstep::config
