#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lockstep/base/export.h"

namespace lockstep::modules {

class SynchronisationScope;

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

  /// Whether the next backward reduces gradients over the ranks: it does but where a SynchronisationScope says no.
  [[nodiscard]] bool synchronises_gradients() const noexcept;

 private:
  friend class SynchronisationScope;
  std::vector<const SynchronisationScope*> scopes_;  // that live, in the order in which they began
};

/// Switches synchronisation off (or on) while it lives. Of several the one that began last holds, in whatever order
/// they end.
class LOCKSTEP_API SynchronisationScope {
 public:
  SynchronisationScope(ModelEngine& engine, bool on) : engine_(engine), on_(on) { engine_.scopes_.push_back(this); }
  ~SynchronisationScope() { std::erase(engine_.scopes_, this); }
  SynchronisationScope(const SynchronisationScope&) = delete;
  SynchronisationScope& operator=(const SynchronisationScope&) = delete;

  [[nodiscard]] bool is_on() const noexcept { return on_; }

 private:
  ModelEngine& engine_;
  bool on_;
};

inline bool ModelEngine::synchronises_gradients() const noexcept { return scopes_.empty() || scopes_.back()->is_on(); }

}  // namespace lockstep::modules
