#pragma once

#include "lockstep/base/export.h"
#include "lockstep/config/distributed_data_parallel_kwargs.h"

namespace lockstep::parallel {

/// Refuses what no engine can be made with, also where there is a single process, which needs none: a script that runs
/// there should run on several.
///
/// @throws NotSupported     for a `dim` other than 0
/// @throws InvalidArgument  for a bucket_cap_mb below 1; for a wrapper that is no dtype; for a PowerSGD of rank below 1
///                          or one that would start before the second iteration, at which buckets are made anew,
///                          although error feedback or warm start keep something per bucket
/// @clause DDP-004, DDP-009, KW-009
LOCKSTEP_API void require_valid(const config::DistributedDataParallelKwargs& kwargs);

}  // namespace lockstep::parallel
