#pragma once

#include "lockstep/sim/check/checked_rank.h"

namespace lockstep::sim {

/// Makes places of the return addresses on a board, from the files on disk, for whoever writes a report. It keeps what
/// it has read, and may be called by several threads.
ResolvePlace resolve_from_files();

}  // namespace lockstep::sim
