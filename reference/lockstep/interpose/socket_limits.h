#pragma once

#include <chrono>

#include "lockstep/base/export.h"

namespace lockstep::interpose {

// c10d's TCPStore waits for its server's answers without a limit: a server whose process stands still, or a stranger
// that holds the port and says nothing, would keep a rank for ever, whatever time-out it was given. The socket is
// c10d's secret, but it is one of this process's descriptors, and known by the port at its other end.
//
// Waits for keys are not affected: for these c10d polls with the store's time-out before it reads.
// socket_limits_test.cpp fails loudly should a release do otherwise.

/// Reads and writes on sockets of this process that are connected to `port` fail when they take longer than `limit`.
LOCKSTEP_API void limit_answers_from(int port, std::chrono::milliseconds limit);

/// Ends what waits on those sockets, and every later use of them, with an error.
LOCKSTEP_API void shut_down_connections_to(int port);

}  // namespace lockstep::interpose
