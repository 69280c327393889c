#pragma once

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <mutex>
#include <utility>
#include <vector>

#include "lockstep/comm/capabilities.h"

namespace lockstep::comm {

/// What a backend is given in place of the caller's tensors: contiguous ones, as bytes where it does not know the
/// dtype. Gloo sends the memory from the first element on, whatever the strides, and says nothing: a slice would arrive
/// as its neighbours. A tensor that is fine already stands for itself; for the others, `land` copies back what came.
class StandIns {
 public:
  /// @param movable  what the backend knows, for a call that moves data; none for one that computes with it
  explicit StandIns(const Capabilities* movable) : movable_(movable) {}

  /// For a tensor that only goes out.
  at::Tensor source(const at::Tensor& tensor) const { return as_known(tensor.contiguous()); }
  /// For a tensor that the call writes to.
  at::Tensor target(const at::Tensor& tensor) {
    auto whole = tensor.contiguous();
    if (!whole.is_same(tensor)) copies_.emplace_back(tensor, whole);
    return as_known(whole);
  }
  std::vector<at::Tensor> sources(const std::vector<at::Tensor>& tensors) const {
    std::vector<at::Tensor> list;
    for (const auto& tensor : tensors) list.push_back(source(tensor));
    return list;
  }
  std::vector<at::Tensor> targets(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> list;
    for (const auto& tensor : tensors) list.push_back(target(tensor));
    return list;
  }
  std::vector<std::vector<at::Tensor>> sources(const std::vector<std::vector<at::Tensor>>& lists) const {
    std::vector<std::vector<at::Tensor>> all;
    for (const auto& list : lists) all.push_back(sources(list));
    return all;
  }
  std::vector<std::vector<at::Tensor>> targets(const std::vector<std::vector<at::Tensor>>& lists) {
    std::vector<std::vector<at::Tensor>> all;
    for (const auto& list : lists) all.push_back(targets(list));
    return all;
  }

  /// Whether something is to be copied back.
  [[nodiscard]] bool any_lands() const noexcept { return !copies_.empty(); }
  /// Copies back, once, after the call has succeeded.
  void land() {
    std::call_once(landed_, [this] {
      const at::NoGradGuard no_grad;
      for (const auto& [tensor, whole] : copies_) tensor.copy_(whole);
    });
  }

 private:
  // The same memory; dimension 0 stays, since all-to-all counts rows.
  at::Tensor as_known(const at::Tensor& tensor) const {
    const bool as_bytes = movable_ != nullptr && movable_->moves_as_bytes(tensor.scalar_type());
    return as_bytes ? tensor.unsqueeze(-1).view(at::kByte) : tensor;
  }

  const Capabilities* movable_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // the caller's tensor, what stands for it
  std::once_flag landed_;
};

}  // namespace lockstep::comm
