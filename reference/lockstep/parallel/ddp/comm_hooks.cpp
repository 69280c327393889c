#include "lockstep/parallel/ddp/comm_hooks.h"

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "lockstep/base/error.h"
#include "lockstep/parallel/ddp/power_sgd.h"

namespace lockstep::parallel {
namespace {

using config::DdpCommunicationHookType;
using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;

class Hook : public c10d::CommHookInterface {
 public:
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }
};

// What the future brings, written into the bucket's own buffer, and so in its dtype.
FuturePtr written_to(const at::Tensor& buffer, const FuturePtr& future) {
  return future->then(
      [buffer](c10::ivalue::Future& done) {
        const at::NoGradGuard no_grad;
        auto mine = buffer;
        return c10::IValue(mine.copy_(c10d::detail::parseCppCommHookResult(done.value())));
      },
      c10::TensorType::get());
}

FuturePtr completed(const at::Tensor& result) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
  future->markCompleted(result);
  return future;
}

// A bucket in a shorter dtype, which bears the bucket's label while its reduction is posted.
class Compressed {
 public:
  Compressed(const comm::ProcessGroup& group, const at::Tensor& buffer, at::ScalarType dtype)
      : group_(group), tensor_(buffer.to(dtype)), is_copy_(!tensor_.is_same(buffer)) {
    if (is_copy_) group_.label_as(tensor_, buffer);
  }
  ~Compressed() {
    if (is_copy_) group_.unlabel(tensor_.const_data_ptr());
  }
  Compressed(const Compressed&) = delete;
  Compressed& operator=(const Compressed&) = delete;

  [[nodiscard]] const at::Tensor& tensor() const { return tensor_; }

 private:
  const comm::ProcessGroup& group_;
  at::Tensor tensor_;
  bool is_copy_;
};

// Averages in a shorter dtype, while backward goes on.
class CompressHook final : public Hook {
 public:
  CompressHook(comm::ProcessGroup group, at::ScalarType dtype) : group_(std::move(group)), dtype_(dtype) {}

  FuturePtr runHook(c10d::GradBucket& bucket) override {
    const Compressed compressed(group_, bucket.getBuffer(), dtype_);
    std::vector<at::Tensor> tensors{compressed.tensor().div_(group_.size())};
    return written_to(bucket.getBuffer(), group_.handle()->allreduce(tensors)->getFuture());
  }

 private:
  comm::ProcessGroup group_;
  at::ScalarType dtype_;
};

// Reduces a bucket to the end before backward goes on: its second and third collective, posted when the first is done,
// would meet those of the next bucket in an order that differs between ranks.
class PowerSgdHook final : public Hook {
 public:
  PowerSgdHook(std::shared_ptr<PowerSgd> power_sgd, PowerSgd::Granularity granularity)
      : power_sgd_(std::move(power_sgd)), granularity_(granularity) {}

  FuturePtr runHook(c10d::GradBucket& bucket) override {
    const at::NoGradGuard no_grad;
    power_sgd_->reduce({.index = bucket.getIndex(),
                        .is_last = bucket.isLast(),
                        .buffer = bucket.getBuffer(),
                        .gradients = bucket.getGradients()},
                       granularity_);
    return completed(bucket.getBuffer());
  }

 private:
  std::shared_ptr<PowerSgd> power_sgd_;
  PowerSgd::Granularity granularity_;
};

// Hands another hook the bucket in a shorter dtype.
class CompressWrapper final : public Hook {
 public:
  CompressWrapper(comm::ProcessGroup group, std::unique_ptr<c10d::CommHookInterface> hook, at::ScalarType dtype)
      : group_(std::move(group)), hook_(std::move(hook)), dtype_(dtype) {}

  FuturePtr runHook(c10d::GradBucket& bucket) override {
    const auto buffer = bucket.getBuffer();
    const Compressed compressed(group_, buffer, dtype_);
    auto shorter = compressed.tensor();
    bucket.setBuffer(shorter);
    return written_to(buffer, hook_->runHook(bucket));
  }

 private:
  comm::ProcessGroup group_;
  std::unique_ptr<c10d::CommHookInterface> hook_;
  at::ScalarType dtype_;
};

at::ScalarType dtype_of(DdpCommunicationHookType type) {
  return type == DdpCommunicationHookType::fp16 ? at::kHalf : at::kBFloat16;
}

}  // namespace

bool is_power_sgd(DdpCommunicationHookType type) {
  return type == DdpCommunicationHookType::power_sgd || type == DdpCommunicationHookType::batched_power_sgd;
}

CommHooks::CommHooks(comm::ProcessGroup group, const config::DistributedDataParallelKwargs& kwargs)
    : group_(std::move(group)), hook_(kwargs.comm_hook), wrapper_(kwargs.comm_wrapper) {
  if (is_power_sgd(hook_)) power_sgd_ = std::make_shared<PowerSgd>(group_, kwargs.comm_state_option);
}

std::unique_ptr<c10d::CommHookInterface> CommHooks::make() const {
  std::unique_ptr<c10d::CommHookInterface> hook;
  switch (hook_) {
    case DdpCommunicationHookType::no: return nullptr;
    case DdpCommunicationHookType::fp16:
    case DdpCommunicationHookType::bf16: hook = std::make_unique<CompressHook>(group_, dtype_of(hook_)); break;
    case DdpCommunicationHookType::power_sgd:
      hook = std::make_unique<PowerSgdHook>(power_sgd_, PowerSgd::Granularity::matrix);
      break;
    case DdpCommunicationHookType::batched_power_sgd:
      hook = std::make_unique<PowerSgdHook>(power_sgd_, PowerSgd::Granularity::bucket);
      break;
  }
  if (wrapper_ == DdpCommunicationHookType::no) return hook;
  return std::make_unique<CompressWrapper>(group_, std::move(hook), dtype_of(wrapper_));
}

}  // namespace lockstep::parallel
