#pragma once

#include <memory>

#include "lockstep/comm/process_group.h"
#include "lockstep/config/distributed_data_parallel_kwargs.h"

namespace c10d {
class CommHookInterface;
}

namespace lockstep::parallel {

class PowerSgd;

bool is_power_sgd(config::DdpCommunicationHookType type);

/// Makes the hooks by which a model's reducers communicate their buckets. What a hook remembers from step to step
/// belongs to the model, and survives a change of reducer.
///
/// @clause DDP-009, KW-009, KW-010
/// @source PyTorch, torch.distributed.algorithms.ddp_comm_hooks
class CommHooks {
 public:
  /// @param kwargs  valid (valid_kwargs.h)
  CommHooks(comm::ProcessGroup group, const config::DistributedDataParallelKwargs& kwargs);

  /// A hook for one reducer; nullptr: none is asked for.
  [[nodiscard]] std::unique_ptr<c10d::CommHookInterface> make() const;

 private:
  comm::ProcessGroup group_;
  config::DdpCommunicationHookType hook_;
  config::DdpCommunicationHookType wrapper_;
  std::shared_ptr<PowerSgd> power_sgd_;  // of the two hooks of that name
};

}  // namespace lockstep::parallel
