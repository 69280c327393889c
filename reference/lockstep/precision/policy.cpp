#include "lockstep/precision/policy.h"

#include <ATen/autocast_mode.h>

#include <utility>

#include "lockstep/interpose/linear_interception.h"
#include "lockstep/precision/fp8_linear.h"

namespace lockstep::precision {
namespace {

class AutocastForward final : public modules::ForwardPrecision {
 public:
  explicit AutocastForward(const Policy& policy) : policy_(policy) {}

  [[nodiscard]] std::unique_ptr<Scope> enter(bool) const override { return std::make_unique<Entered>(policy_); }

 private:
  struct Entered final : Scope {
    explicit Entered(const Policy& policy) : autocast(policy.autocast()) {}
    Autocast autocast;
  };
  Policy policy_;
};

class Fp8Forward final : public modules::ForwardPrecision {
 public:
  Fp8Forward(const Policy& policy, const Policy::Options& options, const torch::nn::Module& model)
      : policy_(policy),
        device_(options.device),
        during_eval_(options.fp8.use_autocast_during_eval),
        layers_(model, options.fp8) {}

  [[nodiscard]] std::unique_ptr<Scope> enter(bool is_training) const override {
    auto entered = std::make_unique<Entered>(policy_);
    if (is_training || during_eval_) {
      entered->linear.emplace([this](const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
        return linear_in_fp8(input, weight, bias);
      });
    }
    return entered;
  }

 private:
  struct Entered final : Scope {
    explicit Entered(const Policy& policy) : autocast(policy.autocast()) {}
    Autocast autocast;
    std::optional<interpose::LinearInterception> linear;
  };

  // float64 stays what it is, as under autocast.
  std::optional<at::Tensor> linear_in_fp8(const at::Tensor& input, const at::Tensor& weight,
                                          const at::Tensor& bias) const {
    const bool is_double = input.scalar_type() == at::kDouble || weight.scalar_type() == at::kDouble;
    if (is_double || !at::autocast::is_autocast_enabled(device_)) return std::nullopt;
    const auto layer = layers_.find(weight);
    if (!layer) return std::nullopt;
    return fp8_linear(input, weight, bias, layer, policy_.autocast_dtype());
  }

  Policy policy_;
  c10::DeviceType device_;
  bool during_eval_;
  Fp8Layers layers_;
};

}  // namespace

Autocast Policy::autocast(const std::optional<config::AutocastKwargs>& kwargs) const {
  if (!native_amp()) return {};
  return Autocast(options_.device, autocast_dtype(), kwargs.value_or(options_.autocast));
}

std::shared_ptr<const modules::ForwardPrecision> Policy::for_model(const torch::nn::Module& model) const {
  if (!native_amp()) return nullptr;
  if (options_.mode == state::MixedPrecision::fp8) return std::make_shared<Fp8Forward>(*this, options_, model);
  return std::make_shared<AutocastForward>(*this);
}

}  // namespace lockstep::precision
