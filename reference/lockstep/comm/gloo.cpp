// The only file that includes ProcessGroupGloo.hpp: the distribution's Gloo headers are older than the Gloo inside
// LibTorch, so no gloo:: type may be constructed, derived from or caught here; devices stay opaque.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "lockstep/comm/backend_makers.h"
#include "lockstep/comm/rendezvous_store.h"

namespace lockstep::comm {
namespace {

using Sockets = std::map<int, std::string>;  // descriptor -> "socket:[inode]", which no later socket has

std::string link_of(int descriptor) {
  std::error_code gone;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), gone);
}

// Gloo accepts connections on a thread of its own, which ends the process when its socket is shut down.
bool is_listening(int descriptor) {
  int value = 0;
  socklen_t size = sizeof(value);
  return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value != 0;
}

Sockets open_sockets() {
  Sockets sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    if (auto link = link_of(descriptor); link.starts_with("socket:")) sockets[descriptor] = std::move(link);
  }
  return sockets;
}

// Gloo as c10d wraps it closes its sockets only when it is destroyed, and destroying it waits for pending calls. A rank
// that has failed must be seen to be gone at once, so abort() shuts its sockets down: every wait here and at the peers
// ends within milliseconds. They are those that the constructor opened.
class AbortableGloo final : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;

  void set_sockets(Sockets sockets) { sockets_ = std::move(sockets); }
  void abort() override {
    for (const auto& [descriptor, link] : sockets_) {
      if (link_of(descriptor) == link && !is_listening(descriptor)) ::shutdown(descriptor, SHUT_RDWR);
    }
  }

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
  auto opened = open_sockets();
  std::erase_if(opened, [&before](const auto& socket) {
    const auto old = before.find(socket.first);
    return old != before.end() && old->second == socket.second;
  });
  gloo->set_sockets(std::move(opened));
  return {.backend = gloo, .capabilities = Capabilities::gloo()};
}

}  // namespace lockstep::comm
