#include "lockstep/base/duration.h"

#include "lockstep/base/error.h"

namespace lockstep {

void require_positive(const std::string& where, std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) return;
  throw InvalidArgument({.where = where,
                         .expected = "a positive time-out",
                         .got = std::to_string(timeout.count()) + " ms",
                         .fix = "Pass how long a rank may wait for its peers."});
}

}  // namespace lockstep
