#include "lockstep/interpose/socket_limits.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <filesystem>
#include <functional>
#include <string>

namespace lockstep::interpose {
namespace {

// The port at the other end; 0 for anything but a connected internet socket.
int peer_port(int descriptor) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return 0;
  if (peer.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(peer).sin_port);
  if (peer.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(peer).sin6_port);
  return 0;
}

void for_each_connection_to(int port, const std::function<void(int descriptor)>& act) {
  if (port == 0) return;  // what is no connection has that one
  std::error_code ignored;
  std::filesystem::directory_iterator entry("/proc/self/fd", ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const int descriptor = std::stoi(entry->path().filename());
    if (peer_port(descriptor) == port) act(descriptor);
  }
}

}  // namespace

void limit_answers_from(int port, std::chrono::milliseconds limit) {
  const timeval time{.tv_sec = limit.count() / 1000, .tv_usec = limit.count() % 1000 * 1000};
  for_each_connection_to(port, [&time](int descriptor) {
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  });
}

void shut_down_connections_to(int port) {
  for_each_connection_to(port, [](int descriptor) { shutdown(descriptor, SHUT_RDWR); });
}

}  // namespace lockstep::interpose
