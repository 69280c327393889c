#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "lockstep/conformance/serve/served_loader.h"
#include "lockstep/state/gradient_state.h"

namespace lockstep::conformance {

/// How a pass is gone through.
struct PassPlan {
  std::optional<std::int64_t> stop_after;  ///< leave after so many steps
  bool with_values = false;                ///< record the batches themselves too
  bool with_slices = false;                ///< record the calls of the slice function too
  /// Runs in the body of each step, after its flags were read; what it gives, if anything, is recorded as "nested".
  std::function<std::optional<Json>(std::int64_t step)> body;
};

/// Goes through one pass, and gives it as PASS: per step the index list, and the flags of the loader and of the
/// gradient state as they are in the loop body; "after", the same when the loop has been left. A pass that fails midway
/// gives what was seen, and "failed".
Json record_pass(const ServedLoader& loader, const state::GradientState& gradients, const PassPlan& plan = {});

}  // namespace lockstep::conformance
