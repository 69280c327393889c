#include "lockstep/conformance/serve/clean_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::conformance {
namespace {

[[noreturn]] void fail() {
  throw RuntimeError({.where = "conformance serve", .expected = "to write to stdout", .got = std::strerror(errno)});
}

void flush_all() {
  std::cout.flush();
  std::fflush(stdout);
}

}  // namespace

CleanOutput::CleanOutput() {
  flush_all();
  stdout_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (stdout_ < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) fail();
}

CleanOutput::~CleanOutput() {
  flush_all();
  dup2(stdout_, STDOUT_FILENO);
  close(stdout_);
}

void CleanOutput::write_line(std::string_view line) const {
  std::string rest(line);
  rest += '\n';
  while (!rest.empty()) {
    const auto written = write(stdout_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    rest.erase(0, static_cast<std::size_t>(written));
  }
}

}  // namespace lockstep::conformance
