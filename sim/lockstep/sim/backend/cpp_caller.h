#pragma once

#include <string>

#include "lockstep/sim/backend/caller.h"

namespace lockstep::sim {

/// What the reference knows of the call that comes next on this thread (comm/backend_plugin.h).
extern thread_local Caller next_call;

/// The modules of this process, as they were when it was first asked for (place/module_table.h).
const std::string& modules_of_process();

}  // namespace lockstep::sim
