#pragma once

// One maker per kind of backend; each stands in a source file of its own, so that what it includes stays there.
#include <functional>

#include "lockstep/comm/backends.h"

namespace lockstep::comm {

MadeBackend make_gloo(const BackendRequest& request);
MadeBackend make_nccl(const BackendRequest& request);
MadeBackend make_threads(const BackendRequest& request);
/// @param path     of the shared library
/// @param options  JSON text for lockstep_backend_create_v1
MadeBackend make_from_plugin(const std::string& path, const BackendRequest& request, const std::string& options);
/// Lets a plug-in that is a watcher stand before the backend that `make_inner` makes. What that one can do, it can.
MadeBackend wrap_by_plugin(const std::string& path, const BackendRequest& request, const std::string& options,
                           const std::function<MadeBackend()>& make_inner);

}  // namespace lockstep::comm
