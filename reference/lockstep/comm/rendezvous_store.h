#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "lockstep/comm/backends.h"

namespace lockstep::comm {

/// The store that a backend meets its peers at. c10d's own would sit out the whole time-out in a wait; here a wait ends
/// as soon as the request's interrupt throws, or a watcher has reached a verdict (Store::wait).
c10::intrusive_ptr<c10d::Store> rendezvous_store(const BackendRequest& request);

}  // namespace lockstep::comm
