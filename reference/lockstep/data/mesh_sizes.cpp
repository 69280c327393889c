#include "lockstep/data/mesh_sizes.h"

#include <c10/util/StringUtil.h>

#include "lockstep/base/error.h"

namespace lockstep::data {

World data_parallel_world(World world, const MeshSizes& mesh) {
  const int same_data = mesh.tp * mesh.cp;
  const int different_data = mesh.dp_replicate * mesh.dp_shard;
  const bool all_positive = mesh.dp_replicate > 0 && mesh.dp_shard > 0 && mesh.tp > 0 && mesh.cp > 0;
  if (!all_positive || same_data * different_data != world.size) {
    throw InvalidArgument({.where = "device mesh",
                           .expected = c10::str("positive sizes whose product is world size ", world.size),
                           .got = c10::str("dp_replicate ", mesh.dp_replicate, ", dp_shard ", mesh.dp_shard, ", tp ",
                                           mesh.tp, ", cp ", mesh.cp)});
  }
  return {.rank = world.rank / same_data, .size = different_data};
}

World data_parallel_world_of_deepspeed(World world, int tp) {
  if (tp < 1 || world.size % tp != 0) {
    throw InvalidArgument({.where = "tensor parallel size",
                           .expected = c10::str("a divisor of world size ", world.size),
                           .got = c10::str(tp)});
  }
  return {.rank = world.rank / tp, .size = world.size / tp};
}

}  // namespace lockstep::data
