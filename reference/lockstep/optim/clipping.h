#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/base/export.h"

namespace lockstep::optim {

/// Scales the gradients of `parameters` in place so that their norm, taken as if they were one vector, is at most
/// `max_norm`: by min(1, max_norm / (norm + 1e-6)). Parameters without a gradient are passed over.
///
/// Gradient (6, 8), max_norm 1: it becomes (0.6, 0.8), and 10 is returned.
///
/// These are this rank's gradients, and nothing is sent. Under a loss scale, unscale them first.
///
/// @param norm_type  of the p-norm; infinity: the largest absolute value
/// @return the norm before clipping, 0 without any gradient. It is computed in the gradients' dtype
/// @throws InvalidArgument  for a max_norm that is negative or NaN, and a norm_type that is NaN
/// @throws RuntimeError  if `error_if_nonfinite` and the norm is infinite or NaN; the gradients are as they were then.
///                       Otherwise they become NaN or 0, as the scale does
/// @clause ACC-040
/// @source PyTorch, torch.nn.utils.clip_grad_norm_. LibTorch's own differs: it counts tensors under norm type 0, and
///         refuses empty gradients under infinity
LOCKSTEP_API double clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2.0,
                                    bool error_if_nonfinite = false);

/// Clamps each element of the gradients to [-clip_value, clip_value], in place.
/// @throws InvalidArgument  for a clip_value that is negative or NaN
/// @clause ACC-041
LOCKSTEP_API void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);

}  // namespace lockstep::optim
