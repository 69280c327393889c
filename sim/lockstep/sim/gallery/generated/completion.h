#pragma once

#include <vector>

#include "lockstep/sim/gallery/generated/program.h"

namespace lockstep::sim::generated {

/// A collective, as one member takes part in it.
struct Part {
  Action action = Action::barrier;
  int member = 0;  ///< group rank
  int root = 0;    ///< group rank; of operations that have one
  int num_members = 1;
};

/// The members who must have started the same collective before this one can be done with it, itself left out.
///
/// Not all of the group, always: a leaf of a broadcast goes on once its ancestors have come, and a root of a gather
/// that is there lets everybody else go. As Gloo in LibTorch 2.11 does it, measured by leaving out one member at a
/// time in groups of 2 to 6. Its reduction is a ring, which for tensors of fewer elements than members has gaps;
/// generated programs have no such tensors.
std::vector<int> needed_members(const Part& part);

}  // namespace lockstep::sim::generated
