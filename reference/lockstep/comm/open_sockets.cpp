#include "lockstep/comm/open_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <filesystem>

namespace lockstep::comm {
namespace {

std::string link_of(int descriptor) {
  std::error_code gone;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), gone);
}

bool is_listening(int descriptor) {
  int value = 0;
  socklen_t size = sizeof(value);
  return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value != 0;
}

}  // namespace

Sockets open_sockets() {
  Sockets sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    if (auto link = link_of(descriptor); link.starts_with("socket:")) sockets[descriptor] = std::move(link);
  }
  return sockets;
}

Sockets sockets_opened_since(const Sockets& before) {
  auto opened = open_sockets();
  std::erase_if(opened, [&before](const auto& socket) {
    const auto old = before.find(socket.first);
    return old != before.end() && old->second == socket.second;
  });
  return opened;
}

void shut_down(const Sockets& sockets) {
  for (const auto& [descriptor, link] : sockets) {
    if (link_of(descriptor) == link && !is_listening(descriptor)) ::shutdown(descriptor, SHUT_RDWR);
  }
}

void keep_open(const Sockets& sockets) {
  for (const auto& [descriptor, link] : sockets) {
    if (link_of(descriptor) == link) fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  }
}

}  // namespace lockstep::comm
