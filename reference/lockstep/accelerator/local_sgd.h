#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/accelerator/accelerator.h"

namespace lockstep {

struct LocalSgdOptions {
  std::int64_t local_sgd_steps = 1;  ///< from one averaging to the next
  bool enabled = true;
};

/// While it lives, each rank trains a model on its own, and every `local_sgd_steps` steps the ranks' parameters are
/// replaced by their mean; so they are at the end, by finish() or that of the scope, unless it is an exception's.
///
///     {
///       LocalSgd local_sgd(accelerator, model, {.local_sgd_steps = 8});
///       for (const Value& batch : *loader) {
///         ...
///         optimizer->step();
///         local_sgd.step();
///       }
///     }
///
/// Without effect in a single process. All ranks make the same calls.
///
/// @source Stich 2019, Local SGD Converges Fast and Communicates Little; Accelerate, LocalSGD
class LOCKSTEP_API LocalSgd {
 public:
  /// @throws InvalidArgument  unless local_sgd_steps is positive
  template <typename Net>
  LocalSgd(Accelerator& accelerator, const modules::Prepared<Net>& model, const LocalSgdOptions& options = {})
      : LocalSgd(accelerator, model.engine().get(), model.module()->parameters(), options) {}
  /// @throws RankLost, Timeout  as finish, unless that was called
  ~LocalSgd() noexcept(false);
  LocalSgd(const LocalSgd&) = delete;
  LocalSgd& operator=(const LocalSgd&) = delete;

  /// After an optimizer step. Blocks for the other ranks when it is time to average. @throws RuntimeError  after finish
  void step();

  /// Averages for the last time; from then on gradients are synchronised again. Later calls do nothing.
  /// @throws RankLost, Timeout  from the averaging
  void finish();

 private:
  LocalSgd(Accelerator& accelerator, modules::ModelEngine* engine, std::vector<at::Tensor> parameters,
           const LocalSgdOptions& options);
  void average() const;

  const Accelerator& accelerator_;
  std::vector<at::Tensor> parameters_;
  std::int64_t local_sgd_steps_;
  bool enabled_;
  std::int64_t num_steps_ = 0;
  int exceptions_at_start_;
  std::optional<Accumulation> gradients_stay_local_;  // until it is finished
};

}  // namespace lockstep
