#pragma once

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"

namespace lockstep::data {

/// How many ranks each axis of a device mesh has; an axis that is not there has one.
struct MeshSizes {
  int dp_replicate = 1;  ///< copies of the model that see different data
  int dp_shard = 1;      ///< shards of its parameters, which see different data too
  int tp = 1;            ///< tensor parallel ranks, which see the same data
  int cp = 1;            ///< context parallel ranks, which see parts of the same samples
};

/// Who a rank is among those that read different data: rank / (tp * cp), of dp_replicate * dp_shard.
///
/// dp_shard 2 and tp 3: ranks 0..5 read as ranks 0 0 0 1 1 1 of 2.
///
/// @throws InvalidArgument  if a size is not positive, or all of them do not make up the world
/// @clause DATA-016
LOCKSTEP_API World data_parallel_world(World world, const MeshSizes& mesh);

/// The same where tensor parallelism is DeepSpeed's: rank and size are divided by `tp`.
/// @throws InvalidArgument  unless `tp` is positive and divides the world's size
/// @clause DATA-016
LOCKSTEP_API World data_parallel_world_of_deepspeed(World world, int tp);

}  // namespace lockstep::data
