#pragma once

#include <memory>

#include "lockstep/base/export.h"

namespace lockstep::modules {

/// What mixed precision does around a prepared model's forward. What the forward returns is then converted to float32
/// (to_float32 in output_tensors.h).
///
/// @clause AMP-003, AMP-004
class LOCKSTEP_API ForwardPrecision {
 public:
  /// Whatever must be undone after the forward, on the thread that ran it.
  class LOCKSTEP_API Scope {
   public:
    virtual ~Scope();
  };

  virtual ~ForwardPrecision();
  /// @param is_training  the model is in training mode
  [[nodiscard]] virtual std::unique_ptr<Scope> enter(bool is_training) const = 0;
};

}  // namespace lockstep::modules
