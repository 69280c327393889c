#include "lockstep/sim/world/guardian_channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::sim {

GuardianChannel GuardianChannel::make() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw RuntimeError({.where = "sim", .expected = "a socket", .got = std::strerror(errno)});
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {launch::Descriptor(ends[0]), launch::Descriptor(ends[1])};
}

void send_to_visible(int guardian_end, const nlohmann::ordered_json& message) {
  const auto line = message.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  std::size_t sent = 0;
  while (sent < line.size()) {
    const auto count = send(guardian_end, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // nobody is there to read it
    sent += static_cast<std::size_t>(count);
  }
}

}  // namespace lockstep::sim
