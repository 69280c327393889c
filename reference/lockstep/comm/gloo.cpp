// The only file that includes ProcessGroupGloo.hpp: the distribution's Gloo headers are older than the Gloo inside
// LibTorch, so no gloo:: type may be constructed, derived from or caught here; devices stay opaque.
#include <csignal>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "lockstep/comm/backend_makers.h"
#include "lockstep/comm/open_sockets.h"
#include "lockstep/comm/rendezvous_store.h"

namespace lockstep::comm {
namespace {

// Gloo as c10d wraps it closes its sockets only when it is destroyed, and destroying it waits for pending calls. A rank
// that has failed must be seen to be gone at once, so abort() shuts its sockets down: every wait here and at the peers
// ends within milliseconds. They are those that the constructor opened.
class AbortableGloo final : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;

  void set_sockets(Sockets sockets) { sockets_ = std::move(sockets); }
  void abort() override { shut_down(sockets_); }

 private:
  Sockets sockets_;
};

// Gloo writes to sockets whose other end may be gone, and a program in C++ dies of that by default; Python ignores the
// signal from the start. A program that handles it keeps its handler.
void ignore_broken_pipes() {
  struct sigaction action {};
  sigaction(SIGPIPE, nullptr, &action);
  if (action.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

MadeBackend make_gloo(const BackendRequest& request) {
  ignore_broken_pipes();
  const auto options = c10d::ProcessGroupGloo::Options::create(request.timeout);
  options->devices.push_back(request.network_interface.empty()
                                 ? c10d::ProcessGroupGloo::createDefaultDevice()
                                 : c10d::ProcessGroupGloo::createDeviceForInterface(request.network_interface));
  options->threads = 1;  // ranks share the machine's cores, and calls of one group run one after the other anyway
  const auto before = open_sockets();
  const auto gloo =
      c10::make_intrusive<AbortableGloo>(rendezvous_store(request), request.world.rank, request.world.size, options);
  gloo->set_sockets(sockets_opened_since(before));
  return {.backend = gloo, .capabilities = Capabilities::gloo()};
}

}  // namespace lockstep::comm
