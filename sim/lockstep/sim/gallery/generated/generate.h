#pragma once

#include <cstdint>

#include "lockstep/sim/gallery/generated/program.h"

namespace lockstep::sim::generated {

/// A healthy program: 2 to 6 ranks, the world and up to two groups within it, 10 to 60 calls for each rank.
///
/// One sequence of operations is made, and each is dealt to the ranks that take part in it. No rank waits for what
/// comes later in the sequence, so the program cannot hang, whatever the ranks' speed. Collectives and messages are
/// synchronous or waited for later; some come as the step of a data-parallel model does, a few labelled buckets
/// started one after the other and then waited for; some ranks set keys of the store for which others wait. Ranks
/// sleep now and then, mostly for 1 to 3 ms, and the last call of all is a barrier of the world.
///
/// Tensors have at least 12 elements: with fewer, Gloo leaves some members out of a reduction's ring (completion.h).
Program generate(std::uint64_t seed);

}  // namespace lockstep::sim::generated
