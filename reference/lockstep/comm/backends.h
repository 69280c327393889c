#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/comm/capabilities.h"
#include "lockstep/comm/store.h"

namespace c10d {
class Backend;
}

namespace lockstep::comm {

/// What a backend is made from.
struct BackendRequest {
  std::string name;        ///< "gloo", "nccl", "threads", "checked", "checked:INNER", or the path of a plug-in
  Store store;             ///< its keys are this group's alone
  World world;             ///< within the group
  std::vector<int> ranks;  ///< global ranks of the members, in group order
  std::string group;
  std::chrono::milliseconds timeout;
  std::string network_interface;  ///< for example "lo"; empty: the one that the host name resolves to
  Store::Interrupt interrupt;     ///< ends the wait for the others, by throwing; may be empty
  std::string plugin_options;     ///< JSON object whose fields go to a plug-in besides ours; may be empty
};

struct MadeBackend {
  c10::intrusive_ptr<c10d::Backend> backend;
  Capabilities capabilities;
};

/// The one table from names to backends. Every group, subgroups included, is made here.
///
/// @throws InvalidArgument  for a name that is neither in the table nor a file, and for a plug-in of another ABI
/// @throws NotSupported     for a backend that this build does not have
LOCKSTEP_API MadeBackend make_backend(const BackendRequest& request);

/// Names that this build can make; paths of plug-ins come on top.
LOCKSTEP_API std::vector<std::string> backend_names();

}  // namespace lockstep::comm
