#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/export.h"
#include "lockstep/config/torch_dynamo_plugin.h"
#include "lockstep/state/partial_state.h"

namespace lockstep::state {

enum class MixedPrecision { no, fp8, fp16, bf16 };
LOCKSTEP_API std::string_view to_word(MixedPrecision precision);
/// @throws InvalidArgument  listing the four words, whose case matters (STATE-113)
LOCKSTEP_API MixedPrecision mixed_precision_from(std::string_view word);

struct AcceleratorStateData {
  MixedPrecision mixed_precision = MixedPrecision::no;
  config::TorchDynamoPlugin dynamo_plugin;
};

struct AcceleratorStateOptions {
  std::optional<std::string> mixed_precision;  ///< else ACCELERATE_MIXED_PRECISION, else "no"
  config::TorchDynamoPlugin dynamo_plugin;     ///< with everything that is unset filled in
  PartialStateOptions partial;
};

/// PartialState, and what the Accelerators of a rank share besides. Made by the first Accelerator; afterwards
/// `AcceleratorState()` is a handle to it.
///
/// @clause STATE-103, 110..113, 115
/// @source Accelerate, AcceleratorState
class LOCKSTEP_API AcceleratorState : public PartialState {
 public:
  /// @throws InvalidArgument  before any Accelerator has been made
  AcceleratorState();
  /// What the Accelerator calls. @throws InvalidArgument when the rank has another mixed precision already, or a device
  /// that is no CPU although `cpu` is asked for; then nothing has changed
  explicit AcceleratorState(const AcceleratorStateOptions& options);

  [[nodiscard]] MixedPrecision mixed_precision() const;
  /// That of the rank's first Accelerator, with its options filled in (KW-031).
  [[nodiscard]] const config::TorchDynamoPlugin& dynamo_plugin() const;
  [[nodiscard]] static bool is_initialized();
  static void reset(bool reset_partial_state = false);

  /// The lines of PartialState, a blank one, and the precision.
  [[nodiscard]] std::string to_text() const;
};

}  // namespace lockstep::state
