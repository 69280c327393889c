#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>

#include "lockstep/base/export.h"

namespace lockstep::interpose {

/// While it lives, every linear layer that runs on this thread is offered to `replacement` first, those of unmodified
/// torch::nn modules too. The innermost one decides; scopes end in the reverse order of their beginning.
///
/// LibTorch's modules have no hooks, and Linear::forward is not virtual; but all that it does is one of the operators
/// aten::linear, addmm (two dimensions and a bias) and matmul (otherwise; the bias is added afterwards), the last two
/// with the transposed weight. Kernels for them under a dispatch key of our own see each call, above autocast and
/// autograd. The key is DeferredInit: LibTorch reserves it for an extension that is no longer kept, registers nothing
/// on it and gives it to no tensor, so the kernels run only where this scope asks for them.
/// linear_interception_test.cpp fails should a release change any of this.
class LOCKSTEP_API LinearInterception {
 public:
  /// Computes input * weight^T + bias in its own way, or returns none to leave it to LibTorch. What it calls itself is
  /// not offered again. `weight` is the layer's, or another tensor on the same elements in the same order; it may be no
  /// layer's at all: every product with a transposed matrix looks alike. `bias` may be undefined.
  using Replacement = std::function<std::optional<at::Tensor>(const at::Tensor& input, const at::Tensor& weight,
                                                              const at::Tensor& bias)>;

  explicit LinearInterception(Replacement replacement);
  ~LinearInterception();
  LinearInterception(const LinearInterception&) = delete;
  LinearInterception& operator=(const LinearInterception&) = delete;

  [[nodiscard]] const Replacement& replacement() const noexcept { return replacement_; }

 private:
  Replacement replacement_;
  const LinearInterception* before_;
  bool key_was_included_;
};

}  // namespace lockstep::interpose
