#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/base/export.h"

namespace lockstep::modules {

/// What a parallel technique does around a model's forward and backward. The model itself is unchanged; `Prepared`
/// calls these, and the Accelerator calls those about backward.
class LOCKSTEP_API ModelEngine {
 public:
  virtual ~ModelEngine();

  virtual void before_forward() = 0;
  /// @param outputs  every tensor that forward returned
  virtual void after_forward(const std::vector<at::Tensor>& outputs) = 0;
  /// After autograd has run; completes what it left, and finds what went wrong.
  virtual void after_backward() = 0;

  /// Whether the next backward reduces gradients over the ranks (accumulation switches it off for a while).
  [[nodiscard]] virtual bool synchronises_gradients() const = 0;
  virtual void set_synchronises_gradients(bool on) = 0;
};

/// Switches synchronisation off (or on) for a scope, and restores it.
class LOCKSTEP_API SynchronisationScope {
 public:
  SynchronisationScope(ModelEngine& engine, bool on) : engine_(engine), before_(engine.synchronises_gradients()) {
    engine_.set_synchronises_gradients(on);
  }
  ~SynchronisationScope() { engine_.set_synchronises_gradients(before_); }
  SynchronisationScope(const SynchronisationScope&) = delete;
  SynchronisationScope& operator=(const SynchronisationScope&) = delete;

 private:
  ModelEngine& engine_;
  bool before_;
};

}  // namespace lockstep::modules
