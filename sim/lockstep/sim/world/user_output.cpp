#include "lockstep/sim/world/user_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "lockstep/launch/caught_signals.h"
#include "lockstep/launch/descriptor.h"

namespace lockstep::sim {
namespace {

constexpr int kPatienceMs = 200;

bool takes_more(int descriptor, int patience_ms) {
  pollfd writable{.fd = descriptor, .events = POLLOUT};
  return poll(&writable, 1, patience_ms) > 0;
}

// A write that waits cannot be called off, and to make it one that does not would change it for all who share it: the
// user's shell, for one. Opened anew, a terminal or a pipe is ours alone. A file never makes us wait, and has to be
// written where others have left off; a socket cannot be opened.
launch::Descriptor opened_anew(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !(S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode))) return {};
  const auto path = "/proc/self/fd/" + std::to_string(descriptor);
  return launch::Descriptor(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

void UserOutput::write(int descriptor, std::string_view text) {
  while (!text.empty() && !is_given_up_) {
    if (launch::CaughtSignals::first() != 0) {
      is_given_up_ = !write_without_waiting(descriptor, text);
      return;
    }
    const auto count = ::write(descriptor, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {  // whoever shares it with us has made it so
      takes_more(descriptor, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

bool UserOutput::write_without_waiting(int descriptor, std::string_view text) {
  const auto own = opened_anew(descriptor);
  const int to = own ? own.number() : descriptor;
  while (!text.empty()) {
    if (!takes_more(to, kPatienceMs)) return false;
    const auto count = ::write(to, text.data(), text.size());
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) return false;
  }
  return true;
}

}  // namespace lockstep::sim
