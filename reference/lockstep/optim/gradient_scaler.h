#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "lockstep/base/export.h"

namespace torch::optim {
class Optimizer;
}

namespace lockstep::optim {

/// Computes the loss again and returns it, for optimizers that need it more than once per step.
using LossClosure = std::function<at::Tensor()>;

/// Keeps small gradients of low-precision training representable: the loss is multiplied by a scale, gradients are
/// divided by it before the step, and a step whose gradients overflowed is left out. This is what the optimizer wrapper
/// and the Accelerator need to know of it; the scaler itself stands with mixed precision.
///
/// One iteration: `scale`, backward, perhaps `unscale_` to clip, `step`, `update`.
///
/// @clause AMP-007, AMP-008, ACC-023, ACC-042
/// @source PyTorch, torch.amp.GradScaler
class LOCKSTEP_API GradientScaler {
 public:
  virtual ~GradientScaler() = default;

  /// The loss times the scale.
  [[nodiscard]] virtual at::Tensor scale(const at::Tensor& loss) = 0;
  /// Divides the gradients of this optimizer's parameters by the scale, and notes whether any is infinite or NaN.
  /// @throws RuntimeError  the second time before the next `update`
  virtual void unscale_(torch::optim::Optimizer& optimizer) = 0;
  /// Steps the optimizer, unscaling first if nobody has, unless a gradient was infinite or NaN.
  /// @return whether the optimizer stepped
  /// @throws AssertionError  when none of its parameters has a gradient
  virtual bool step(torch::optim::Optimizer& optimizer, const LossClosure& closure) = 0;
  /// Called after every `step`. Adapts the scale once per iteration: of several optimizers that share a scaler, after
  /// the last one's (ACC-026).
  virtual void update() = 0;
};

}  // namespace lockstep::optim
