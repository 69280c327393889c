#pragma once

#include <memory>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/config/distributed_data_parallel_kwargs.h"
#include "lockstep/modules/model_engine.h"
#include "lockstep/parallel/ddp/join.h"

namespace torch::nn {
class Module;
}

namespace lockstep::parallel {

/// How a model is trained on several ranks. The Accelerator asks for one and knows no technique by name; a technique is
/// a folder beside this file.
class LOCKSTEP_API Strategy {
 public:
  virtual ~Strategy();

  /// The engine for one model; none when the model needs no help: nothing in it is trained. Called on all ranks, for
  /// the same models in the same order. The model is on its device already.
  /// @throws RuntimeError  on the CPU, for a model without parameters that require a gradient
  /// @clause STATE-148, DDP-010
  virtual std::shared_ptr<modules::ModelEngine> prepare(const std::shared_ptr<torch::nn::Module>& model) = 0;

  /// Lets ranks train these of its engines on unequal numbers of inputs (join.h); none where there is nothing to join.
  /// @throws NotSupported, InvalidArgument  as Join's constructor
  /// @clause ACC-044
  virtual std::unique_ptr<Join> join(const std::vector<std::shared_ptr<modules::ModelEngine>>& engines,
                                     JoinDivisor divisor);
};

struct StrategyRequest {
  comm::ProcessGroup group;  ///< none for a single process
  config::DistributedDataParallelKwargs ddp;
  bool on_accelerator = false;  ///< there a model without trained parameters is left alone; on the CPU it is refused
};

LOCKSTEP_API std::unique_ptr<Strategy> make_strategy(const StrategyRequest& request);

}  // namespace lockstep::parallel
