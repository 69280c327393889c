#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/config/data_loader_configuration.h"
#include "lockstep/config/distributed_data_parallel_kwargs.h"
#include "lockstep/config/gradient_accumulation_plugin.h"
#include "lockstep/config/init_process_group_kwargs.h"
#include "lockstep/config/kwargs_handlers.h"
#include "lockstep/config/profile_kwargs.h"
#include "lockstep/config/project_configuration.h"
#include "lockstep/config/torch_dynamo_plugin.h"
#include "lockstep/data/data_loader_dispatcher.h"

namespace lockstep {

/// What an Accelerator is made with. Names and defaults are Accelerate's; `ddp_kwargs` and `timeout` are short forms of
/// kwargs_handlers.
///
/// An option of the data configuration may stand here instead; in both places with different values it is an error,
/// where a bool of dataloader_config that has its default counts as not given.
struct AcceleratorOptions {
  bool device_placement = true;  ///< models and batches are moved to the device
  std::optional<bool> split_batches;
  std::optional<bool> dispatch_batches;
  std::optional<bool> even_batches;
  std::optional<std::string> mixed_precision;  ///< no, bf16, fp16, fp8; else ACCELERATE_MIXED_PRECISION, else no
  int gradient_accumulation_steps = 1;         ///< overridden by ACCELERATE_GRADIENT_ACCUMULATION_STEPS
  bool cpu = false;
  bool step_scheduler_with_optimizer = true;
  std::vector<std::string> rng_types = {"generator"};  ///< synchronised at the start of each pass over a loader
  config::DataLoaderConfiguration dataloader_config;
  std::optional<config::GradientAccumulationPlugin> gradient_accumulation_plugin;
  config::DistributedDataParallelKwargs ddp_kwargs;
  std::optional<std::chrono::milliseconds> timeout;    ///< how long a rank waits for its peers
  std::vector<config::KwargsHandler> kwargs_handlers;  ///< at most one of each kind (AMP-009)
  config::InitProcessGroupKwargs
      init_process_group_kwargs;           ///< the short form of a handler of that kind, as ddp_kwargs
  config::ProfileKwargs profile_kwargs;    ///< of profile() without an argument
  std::optional<std::string> project_dir;  ///< of a project_config that has none
  std::optional<std::string> logging_dir;  ///< of a project_config that has none
  config::ProjectConfiguration project_config;
  std::vector<std::string> log_with;                       ///< names of trackers; none is there yet
  std::optional<std::string> dynamo_backend;               ///< "no", in any case; there is no compiler
  std::optional<config::TorchDynamoPlugin> dynamo_plugin;  ///< instead of dynamo_backend
};

/// How one loader is prepared, where it differs from the others.
struct PrepareDataLoaderOptions {
  std::optional<bool> device_placement;       ///< unset: the Accelerator's
  data::SliceFunction slice_fn_for_dispatch;  ///< how a dispatched batch is cut; empty: in rows
  bool already_sharded = false;               ///< the loader hands out this rank's part by itself
};

/// Whether each object that prepare() is given is moved to the device, in their order; instead of the Accelerator's
/// device_placement.
struct DevicePlacement {
  std::vector<bool> per_object;
};

}  // namespace lockstep
