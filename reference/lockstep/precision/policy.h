#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>

#include "lockstep/base/export.h"
#include "lockstep/config/autocast_kwargs.h"
#include "lockstep/modules/forward_precision.h"
#include "lockstep/precision/autocast.h"
#include "lockstep/precision/fp8_recipe.h"
#include "lockstep/state/accelerator_state.h"

namespace torch::nn {
class Module;
}

namespace lockstep::precision {

/// What a mixed precision mode means for models and blocks of code.
///
/// | mode | autocast dtype | gradient scaler | linear layers of prepared models |
/// |------|----------------|-----------------|----------------------------------|
/// | no   | none           | none            | as they are                      |
/// | bf16 | bfloat16       | none            | bfloat16                         |
/// | fp16 | float16        | yes             | float16                          |
/// | fp8  | bfloat16       | none            | float8, where autocast is on     |
///
/// The same on the CPU: fp16 is real there too (AMP-002, second accepted outcome).
///
/// @clause AMP-001..005, AMP-011
class LOCKSTEP_API Policy {
 public:
  struct Options {
    state::MixedPrecision mode = state::MixedPrecision::no;
    c10::DeviceType device = c10::kCPU;
    config::AutocastKwargs autocast;
    Fp8Recipe fp8;
  };
  explicit Policy(const Options& options) : options_(options) {}

  /// Whether models run under autocast.
  [[nodiscard]] bool native_amp() const noexcept { return options_.mode != state::MixedPrecision::no; }
  [[nodiscard]] bool uses_scaler() const noexcept { return options_.mode == state::MixedPrecision::fp16; }
  [[nodiscard]] c10::ScalarType autocast_dtype() const noexcept { return uses_scaler() ? c10::kHalf : c10::kBFloat16; }

  /// The mode for a block of code; nothing for mode no. @param kwargs  instead of those of the options
  [[nodiscard]] Autocast autocast(const std::optional<config::AutocastKwargs>& kwargs = {}) const;
  /// The mode for a model's forwards; none for mode no.
  [[nodiscard]] std::shared_ptr<const modules::ForwardPrecision> for_model(const torch::nn::Module& model) const;

 private:
  Options options_;
};

}  // namespace lockstep::precision
