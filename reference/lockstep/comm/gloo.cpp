// The only file that includes ProcessGroupGloo.hpp: the distribution's Gloo headers are older than the Gloo inside
// LibTorch, so no gloo:: type may be constructed, derived from or caught here; devices and contexts stay opaque (what is called
// on them are exported functions of LibTorch).
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "lockstep/comm/backend_makers.h"

namespace lockstep::comm {
namespace {

// Gloo as c10d wraps it keeps its sockets open until it is destroyed, and destroying waits for pending calls. A rank that
// has failed must be seen to be gone at once, so here abort() closes them.
class ClosableGloo final : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void abort() override {
    for (const auto& context : contexts_) context->closeConnections();
  }
};

}  // namespace

MadeBackend make_gloo(const BackendRequest& request) {
  const auto options = c10d::ProcessGroupGloo::Options::create(request.timeout);
  options->devices.push_back(request.network_interface.empty()
                                 ? c10d::ProcessGroupGloo::createDefaultDevice()
                                 : c10d::ProcessGroupGloo::createDeviceForInterface(request.network_interface));
  options->threads = 1;
  return {.backend = c10::make_intrusive<ClosableGloo>(request.store.handle(), request.world.rank, request.world.size, options),
          .capabilities = Capabilities::gloo()};
}

}  // namespace lockstep::comm
