#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>

#include "lockstep/base/export.h"
#include "lockstep/config/autocast_kwargs.h"

namespace lockstep::precision {

/// While it lives, operations on this thread that gain from it run in a low precision: matrix products and the like
/// cast their float32 inputs to `dtype`, those that need the range stay in float32, and parameters keep their dtype.
/// float64 and integers are left alone.
///
/// Scopes nest, and end in the reverse order of their beginning. One with `enabled = false` inside another gives
/// float32 there. The casts of parameters are kept until the outermost scope ends, so that a parameter used twice is
/// cast once; `cache_enabled = false` does without.
///
/// Backward belongs outside: each operation's gradient is computed in the dtype that its forward ran in, whether or not
/// a scope is active.
///
/// @clause AMP-005, KW-004
/// @source Micikevicius et al. 2018, Mixed precision training, section 3; PyTorch, torch.autocast
class LOCKSTEP_API Autocast {
 public:
  /// Nothing changes.
  Autocast() = default;
  /// @throws InvalidArgument  for a dtype other than bfloat16 and float16
  Autocast(c10::DeviceType device, c10::ScalarType dtype, const config::AutocastKwargs& kwargs = {});
  /// Switched off for the scope.
  [[nodiscard]] static Autocast off(c10::DeviceType device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  struct Before {
    c10::DeviceType device;
    bool enabled;
    c10::ScalarType dtype;
    bool cache_enabled;
  };
  std::optional<Before> before_;
};

}  // namespace lockstep::precision
