#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <exception>
#include <functional>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/comm/backend_makers.h"
#include "lockstep/comm/backend_plugin.h"
#include "lockstep/comm/watcher.h"

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

[[noreturn]] void nothing_made(const std::string& path, const BackendRequest& request, const char* reason) {
  throw RuntimeError({.where = "backend plug-in " + path,
                      .expected = fmt::format("an end of group '{}' for {}", request.group, to_text(request.world)),
                      .got = reason[0] != '\0' ? reason : "nothing, and no reason"});
}

// Never closed: objects made by the plug-in outlive any scope here, and their code lives in the library.
void* load(const std::string& path) {
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
  return library;
}

}  // namespace

MadeBackend make_from_plugin(const std::string& path, const BackendRequest& request, const std::string& options) {
  void* library = load(path);
  const auto create = find<lockstep_backend_create_v1_t>(library, "lockstep_backend_create_v1");
  MadeBackend made;
  if (const auto describe = find<lockstep_backend_capabilities_v1_t>(library, "lockstep_backend_capabilities_v1")) {
    made.capabilities = Capabilities::from_json(path, describe() == nullptr ? "" : describe());
  }
  std::array<char, 1024> error{};
  const int failed = create(&request.store.handle(), request.world.rank, request.world.size, options.c_str(),
                            &made.backend, error.data(), error.size());
  error.back() = '\0';
  if (failed != 0 || !made.backend) nothing_made(path, request, error.data());
  return made;
}

namespace {

// What a watcher is given to make its inner backend with. Exceptions do not cross its C functions, so one of the
// inner backend's is kept and goes on from here.
struct InnerMaker {
  const std::function<MadeBackend()>& make;
  Capabilities capabilities;
  std::exception_ptr failure;

  static int run(void* context, c10::intrusive_ptr<c10d::Backend>* inner) {
    auto& self = *static_cast<InnerMaker*>(context);
    try {
      auto made = self.make();
      self.capabilities = std::move(made.capabilities);
      *inner = std::move(made.backend);
      return 0;
    } catch (...) {
      self.failure = std::current_exception();
      return 1;
    }
  }
};

}  // namespace

MadeBackend wrap_by_plugin(const std::string& path, const BackendRequest& request, const std::string& options,
                           const std::function<MadeBackend()>& make_inner) {
  void* library = load(path);
  const auto get_watcher = find<lockstep_backend_watcher_v1_t>(library, "lockstep_backend_watcher_v1");
  if (get_watcher == nullptr) refuse(path, "the function lockstep_backend_watcher_v1", "none");
  set_watcher(get_watcher());
  MadeBackend made;
  InnerMaker inner{.make = make_inner};
  std::array<char, 1024> error{};
  const int failed =
      get_watcher()->wrap(&request.store.handle(), request.world.rank, request.world.size, options.c_str(),
                          &InnerMaker::run, &inner, &made.backend, error.data(), error.size());
  error.back() = '\0';
  if (inner.failure) std::rethrow_exception(inner.failure);
  if (failed != 0 || !made.backend) nothing_made(path, request, error.data());
  made.capabilities = std::move(inner.capabilities);
  return made;
}

}  // namespace lockstep::comm
