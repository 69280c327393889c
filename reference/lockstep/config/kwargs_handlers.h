#pragma once

#include <variant>
#include <vector>

#include "lockstep/config/autocast_kwargs.h"
#include "lockstep/config/distributed_data_parallel_kwargs.h"
#include "lockstep/config/fp8_recipe_kwargs.h"
#include "lockstep/config/grad_scaler_kwargs.h"
#include "lockstep/config/init_process_group_kwargs.h"
#include "lockstep/config/profile_kwargs.h"

namespace lockstep::config {

/// One of the option objects that an Accelerator takes as kwargs_handlers. A new kind is added here, with its
/// `fields_of`; `to_kwargs` and the check for two of one kind follow by themselves. What is no handler does not
/// compile.
///
/// @clause AMP-009, KW-002, KW-003
/// @source Accelerate, KwargsHandler
using KwargsHandler = std::variant<AutocastKwargs, DistributedDataParallelKwargs, FP8RecipeKwargs, GradScalerKwargs,
                                   InitProcessGroupKwargs, ProfileKwargs>;

/// The handler of that kind, or null.
template <typename Handler>
const Handler* find_handler(const std::vector<KwargsHandler>& handlers) {
  for (const auto& handler : handlers) {
    if (const auto* found = std::get_if<Handler>(&handler)) return found;
  }
  return nullptr;
}

/// The handler of that kind, or its defaults.
template <typename Handler>
Handler handler_or_default(const std::vector<KwargsHandler>& handlers) {
  const auto* found = find_handler<Handler>(handlers);
  return found ? *found : Handler{};
}

}  // namespace lockstep::config
