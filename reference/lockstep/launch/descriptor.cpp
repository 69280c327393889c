#include "lockstep/launch/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::launch {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  reset();
  number_ = other.release();
  return *this;
}

void Descriptor::reset() noexcept {
  if (number_ >= 0) close(std::exchange(number_, -1));
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw RuntimeError({.where = "launcher", .expected = "a pipe", .got = std::strerror(errno)});
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace lockstep::launch
