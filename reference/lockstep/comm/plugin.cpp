#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/comm/backend_makers.h"
#include "lockstep/comm/backend_plugin.h"

namespace lockstep::comm {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& expected, const std::string& got) {
  throw InvalidArgument({.where = "backend plug-in " + path,
                         .expected = expected,
                         .got = got,
                         .fix = "Build it against this LibTorch, with backend_plugin.h of this Lockstep."});
}

template <typename Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

MadeBackend make_from_plugin(const std::string& path, const BackendRequest& request, const std::string& options) {
  // Never closed: objects made by the plug-in outlive any scope here, and their code lives in the library.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(path, "a shared library that can be loaded", dlerror());
  const auto abi = find<lockstep_backend_abi_v1_t>(library, "lockstep_backend_abi_v1");
  const auto create = find<lockstep_backend_create_v1_t>(library, "lockstep_backend_create_v1");
  if (abi == nullptr || create == nullptr) {
    refuse(path, "the functions lockstep_backend_abi_v1 and lockstep_backend_create_v1",
           abi == nullptr ? "no lockstep_backend_abi_v1" : "no lockstep_backend_create_v1");
  }
  const char* its_abi = abi() == nullptr ? "none" : abi();
  if (std::string_view(its_abi) != LOCKSTEP_BACKEND_ABI) {
    refuse(path, fmt::format("ABI \"{}\"", LOCKSTEP_BACKEND_ABI), fmt::format("ABI \"{}\"", its_abi));
  }
  MadeBackend made;
  if (const auto describe = find<lockstep_backend_capabilities_v1_t>(library, "lockstep_backend_capabilities_v1")) {
    made.capabilities = Capabilities::from_json(path, describe() == nullptr ? "" : describe());
  }
  std::array<char, 1024> error{};
  const int failed = create(&request.store.handle(), request.world.rank, request.world.size, options.c_str(),
                            &made.backend, error.data(), error.size());
  error.back() = '\0';
  if (failed != 0 || !made.backend) {
    throw RuntimeError({.where = "backend plug-in " + path,
                        .expected = fmt::format("an end of group '{}' for {}", request.group, to_text(request.world)),
                        .got = error[0] != '\0' ? error.data() : "nothing, and no reason"});
  }
  return made;
}

}  // namespace lockstep::comm
