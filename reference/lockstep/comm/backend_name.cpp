#include "lockstep/comm/backend_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/backends.h"

namespace lockstep::comm {
namespace {

constexpr std::string_view kWrapper = "checked:";

bool is_path(std::string_view name) { return name.find('/') != std::string_view::npos || name.ends_with(".so"); }

}  // namespace

void check_backend_name(const std::string& name) {
  // Also those that this build cannot make: asking for one is told to be so where it is made.
  for (const auto* known : {"gloo", "nccl", "threads", "checked"}) {
    if (name == known) return;
  }
  if (name.starts_with(kWrapper)) return check_backend_name(name.substr(kWrapper.size()));
  if (is_path(name)) return;
  throw InvalidArgument(
      {.where = "backend",
       .expected = fmt::format("one of {}, or the path of a plug-in", fmt::join(backend_names(), ", ")),
       .got = "'" + name + "'",
       .fix = "Set LOCKSTEP_BACKEND to one of them."});
}

std::string with_inner(const std::string& name, const std::string& standard) {
  return name == "checked" ? std::string(kWrapper) + standard : name;
}

std::string moving_backend(const std::string& name) {
  if (name == "checked") return "gloo";
  return name.starts_with(kWrapper) ? moving_backend(name.substr(kWrapper.size())) : name;
}

}  // namespace lockstep::comm
