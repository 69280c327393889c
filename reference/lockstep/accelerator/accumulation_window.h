#pragma once

#include <cstdint>

#include "lockstep/base/export.h"
#include "lockstep/state/gradient_state.h"

namespace lockstep {

/// Counts the micro-batches of an Accelerator's accumulation windows: when one ends, and what its losses are divided
/// by.
///
/// That a window is shorter is known when its last micro-batch begins: the loader's length may be unknown, and a pass
/// may be left early. By AccumulationRule::window_mean what was gathered until then is therefore corrected. Windows of
/// 4, of which the last has 2: the first loss is divided by 4, its gradient then multiplied by 2, and the second loss
/// divided by 2.
///
/// @clause ACC-001..005
class LOCKSTEP_API AccumulationWindow {
 public:
  /// A micro-batch begins: tells the gradient state whether it ends the window.
  /// @return what the gradients that the window has gathered so far are to be multiplied by; 1 if nothing is to be done
  double begin_micro_batch(state::GradientState& gradients);

  /// Micro-batches since the last end of a pass, 0 after the one that ended it.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// Of the losses of the current micro-batch.
  [[nodiscard]] std::int64_t divisor(const state::GradientState& gradients) const;

 private:
  std::int64_t count_ = 0;    // since the last end of a pass: every num_steps-th ends a window (ACC-001)
  std::int64_t size_ = 0;     // micro-batches of the window, this one included
  std::int64_t divisor_ = 0;  // of the losses so far, by window_mean; 0 before the first micro-batch
  bool is_open_ = false;      // the micro-batch before did not end the window
};

}  // namespace lockstep
