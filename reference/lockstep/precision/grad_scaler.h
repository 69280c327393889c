#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <map>

#include "lockstep/base/export.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/config/grad_scaler_kwargs.h"
#include "lockstep/optim/gradient_scaler.h"
#include "lockstep/value/value.h"

namespace lockstep::precision {

/// Loss scaling whose scale finds its own size: `growth_interval` good iterations in a row multiply it by
/// `growth_factor`, one with an infinite or NaN gradient by `backoff_factor`.
///
/// Scale 65536, gradients 1 and then infinity, SGD with rate 1: after the first step the parameter is -1 and the scale
/// 65536; the second step is left out and leaves 32768.
///
/// An iteration is over once every optimizer that shares the scaler has stepped, or when one of them steps again after
/// a new backward; only then does the scale change. The gradients of one iteration are divided by the scale that they
/// were multiplied by; those that an optimizer gathers over several iterations need a scale that does not change
/// meanwhile. Each optimizer skips on its own: only those with an overflow among their gradients do.
///
/// @clause AMP-007, AMP-008, AMP-012, ACC-023..026, ACC-042, KW-012
/// @source Micikevicius et al. 2018, Mixed precision training, section 3.2; PyTorch, torch.amp.GradScaler
class LOCKSTEP_API GradScaler final : public optim::GradientScaler {
 public:
  /// @param shards  ranks that hold parts of the same gradients: they agree on whether there was an overflow, and so
  ///                skip together; all of them unscale the same optimizers in the same order. None: gradients are whole
  ///                on this rank (DDP's are equal on all ranks, and need no agreement)
  /// @throws AssertionError  unless 0 < init_scale, which float32 holds, 1 < growth_factor, 0 < backoff_factor < 1 and
  ///                         1 <= growth_interval
  explicit GradScaler(const config::GradScalerKwargs& kwargs = {}, c10::Device device = c10::kCPU,
                      comm::ProcessGroup shards = {});

  /// This optimizer steps once per iteration: `update` waits for it.
  void share_with(const torch::optim::Optimizer& optimizer);
  /// Nobody shares the scaler any more: each `update` ends an iteration.
  void forget_optimizers();

  /// loss * scale; in float32 for a scalar loss of a lower precision, which could not hold it.
  [[nodiscard]] at::Tensor scale(const at::Tensor& loss) override;
  /// @throws RuntimeError     the second time before the next `step`, and after a `step` without a new backward
  /// @throws InvalidArgument  for float16 gradients: parameters stay in float32
  void unscale_(torch::optim::Optimizer& optimizer) override;
  /// @throws RuntimeError  the second time without a new backward or an `update`
  /// @throws NotSupported  for a closure, which computes gradients that nobody would unscale
  bool step(torch::optim::Optimizer& optimizer, const optim::LossClosure& closure = nullptr) override;
  void update() override;

  [[nodiscard]] bool is_enabled() const noexcept { return kwargs_.enabled; }
  /// The scale; 1 when it is not enabled.
  [[nodiscard]] double get_scale() const;
  /// Good iterations since the scale changed last.
  [[nodiscard]] int get_growth_tracker() const;

  /// {scale, growth_factor, backoff_factor, growth_interval, _growth_tracker}: PyTorch's names. {} when not enabled.
  [[nodiscard]] Value state_dict() const;
  /// Without effect when not enabled, or when it throws.
  /// @throws RuntimeError    for {}, the state of a scaler that was not enabled
  /// @throws AssertionError  for values that the constructor refuses
  void load_state_dict(const Value& state);

 private:
  enum class Stage {
    ready,         ///< gradients carry the scale
    unscaled,      ///< by `unscale_`, and not stepped yet
    stepped,       ///< waits for the others
    stepped_once,  ///< the same, and a new backward has begun
  };
  struct Progress {
    bool is_awaited = false;  ///< by `update`
    Stage stage = Stage::ready;
    at::Tensor found_inf;  ///< [], above 0 after an overflow; undefined while there was no gradient to check
  };

  void begin_again(Progress& progress);
  void end_iteration();
  [[nodiscard]] bool all_have_stepped() const;
  [[nodiscard]] at::Tensor unscale_gradients(torch::optim::Optimizer& optimizer) const;

  config::GradScalerKwargs kwargs_;
  comm::ProcessGroup shards_;
  at::Tensor scale_;           ///< [], float32
  at::Tensor gradient_scale_;  ///< what the present gradients carry; undefined: scale_
  at::Tensor growth_tracker_;  ///< [], int32
  std::map<const torch::optim::Optimizer*, Progress> progress_;
};

}  // namespace lockstep::precision
