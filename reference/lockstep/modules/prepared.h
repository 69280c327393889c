#pragma once

#include <memory>
#include <utility>

#include "lockstep/accounting/account.h"
#include "lockstep/modules/forward_precision.h"
#include "lockstep/modules/model_engine.h"
#include "lockstep/modules/output_tensors.h"

namespace lockstep::modules {

/// A model that an Accelerator has prepared. Call it as the model itself: it forwards to the model's own `forward`, in
/// the scope of whatever engine synchronises its gradients and of the mixed precision, under which it returns float32.
///
///     auto model = accelerator.prepare(Net());
///     auto logits = model(images);
///     model->eval();                      // everything else is the model's
///
/// Cheap to copy: copies are the same model. `Net` is the module's implementation class (`NetImpl` for a TORCH_MODULE).
///
/// @clause STATE-148, AMP-003, AMP-004
template <typename Net>
class Prepared {
 public:
  /// @param precision  none: forward runs as it stands
  Prepared(std::shared_ptr<Net> net, std::shared_ptr<ModelEngine> engine, std::shared_ptr<accounting::Account> account,
           std::shared_ptr<const ForwardPrecision> precision = nullptr)
      : net_(std::move(net)),
        engine_(std::move(engine)),
        account_(std::move(account)),
        precision_(std::move(precision)) {}

  template <typename... Args>
  auto operator()(Args&&... args) const {
    const accounting::PhaseScope phase(*account_,
                                       net_->is_training() ? accounting::Phase::forward : accounting::Phase::eval);
    account_->emit([] { return accounting::Forward{.edge = accounting::Edge::begin}; });
    if (engine_) engine_->before_forward();
    auto output = forward_in_precision(std::forward<Args>(args)...);
    if (engine_) engine_->after_forward(tensors_in(output));
    account_->emit([] { return accounting::Forward{.edge = accounting::Edge::end}; });
    return output;
  }

  Net* operator->() const noexcept { return net_.get(); }
  Net& operator*() const noexcept { return *net_; }
  /// The model itself, as `unwrap_model` gives it.
  [[nodiscard]] const std::shared_ptr<Net>& module() const noexcept { return net_; }
  /// None when one process trains alone.
  [[nodiscard]] const std::shared_ptr<ModelEngine>& engine() const noexcept { return engine_; }
  /// The same model in the same precision, without the engine: its gradients stay this rank's own.
  [[nodiscard]] Prepared without_engine() const { return Prepared(net_, nullptr, account_, precision_); }

 private:
  template <typename... Args>
  auto forward_in_precision(Args&&... args) const {
    if (!precision_) return net_->forward(std::forward<Args>(args)...);
    const auto scope = precision_->enter(net_->is_training());
    return to_float32(net_->forward(std::forward<Args>(args)...));
  }

  std::shared_ptr<Net> net_;
  std::shared_ptr<ModelEngine> engine_;
  std::shared_ptr<accounting::Account> account_;
  std::shared_ptr<const ForwardPrecision> precision_;
};

}  // namespace lockstep::modules
