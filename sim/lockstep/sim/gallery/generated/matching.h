#pragma once

#include "lockstep/sim/gallery/generated/program.h"

namespace lockstep::sim::generated {

/// Whether two members make the same collective, as far as their calls' fingerprints and labels tell.
bool look_alike(const Call& a, const Call& b);

/// Whether the calls go together, as one collective or as the two ends of a message. Those of an all-to-all may look
/// alike and disagree about the rows that one sends the other.
bool match(const Call& a, const Call& b);

}  // namespace lockstep::sim::generated
