#include "lockstep/interpose/linear_interception.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

namespace lockstep::interpose {
namespace {

constexpr auto kKey = c10::DispatchKey::DeferredInit;

thread_local const LinearInterception* innermost = nullptr;

// A thread of autograd's has the key of the thread that began the backward, but no scope.
std::optional<at::Tensor> replaced(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
  return innermost == nullptr ? std::nullopt : innermost->replacement()(input, weight, bias);
}

bool is_transposed_matrix(const at::Tensor& tensor) { return tensor.dim() == 2 && tensor.t().is_contiguous(); }

at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  auto output = replaced(input, weight, bias.value_or(at::Tensor()));
  return output ? *std::move(output) : at::linear(input, weight, bias);
}

at::Tensor addmm(const at::Tensor& bias, const at::Tensor& input, const at::Tensor& transposed, const at::Scalar& beta,
                 const at::Scalar& alpha) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  std::optional<at::Tensor> output;
  const bool is_linear = bias.dim() == 1 && beta.equal(1) && alpha.equal(1) && is_transposed_matrix(transposed);
  if (is_linear) output = replaced(input, transposed.t(), bias);
  return output ? *std::move(output) : at::addmm(bias, input, transposed, beta, alpha);
}

at::Tensor matmul(const at::Tensor& input, const at::Tensor& transposed) {
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  std::optional<at::Tensor> output;
  if (is_transposed_matrix(transposed)) output = replaced(input, transposed.t(), at::Tensor());
  return output ? *std::move(output) : at::matmul(input, transposed);
}

}  // namespace

LinearInterception::LinearInterception(Replacement replacement)
    : replacement_(std::move(replacement)),
      before_(innermost),
      key_was_included_(c10::impl::tls_is_dispatch_key_included(kKey)) {
  innermost = this;
  c10::impl::tls_set_dispatch_key_included(kKey, true);
}

LinearInterception::~LinearInterception() {
  innermost = before_;
  c10::impl::tls_set_dispatch_key_included(kKey, key_was_included_);
}

}  // namespace lockstep::interpose

TORCH_LIBRARY_IMPL(_, DeferredInit, library) { library.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, DeferredInit, library) {
  library.impl("linear", TORCH_FN(lockstep::interpose::linear));
  library.impl("addmm", TORCH_FN(lockstep::interpose::addmm));
  library.impl("matmul", TORCH_FN(lockstep::interpose::matmul));
}
