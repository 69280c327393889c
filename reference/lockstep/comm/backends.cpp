#include "lockstep/comm/backends.h"

#include <dlfcn.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/backend_makers.h"
#include "lockstep/comm/backend_name.h"

namespace lockstep::comm {
namespace {

constexpr std::string_view kChecked = "checked";
constexpr auto kCheckedLibrary = "liblockstep_checked.so";

std::string plugin_options(const BackendRequest& request, const std::string& inner) {
  nlohmann::json options = {
      {"timeout_ms", request.timeout.count()},     {"group", request.group}, {"ranks", request.ranks}, {"inner", inner},
      {"inner_options", nlohmann::json::object()}, {"level", "full"}};
  if (!request.plugin_options.empty()) options.update(nlohmann::json::parse(request.plugin_options));
  return options.dump();
}

// The checked backend is a plug-in like any other, installed beside this library.
std::filesystem::path beside_this_library(const char* name) {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&backend_names), &info);
  return std::filesystem::path(info.dli_fname).parent_path() / name;
}

std::optional<std::string> inner_of_checked(const std::string& name) {
  if (name == kChecked) return "gloo";
  if (name.starts_with("checked:")) return name.substr(kChecked.size() + 1);
  return std::nullopt;
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names = {"gloo", "threads"};
#ifdef USE_C10D_NCCL
  names.emplace_back("nccl");
#endif
  if (std::filesystem::exists(beside_this_library(kCheckedLibrary))) names.emplace_back(kChecked);
  return names;
}

MadeBackend make_backend(const BackendRequest& request) {
  const std::string& name = request.name;
  check_backend_name(name);
  if (name == "gloo") return make_gloo(request);
  if (name == "nccl") return make_nccl(request);
  if (name == "threads") return make_threads(request);
  if (const auto inner = inner_of_checked(name)) {
    const auto library = beside_this_library(kCheckedLibrary);
    if (!std::filesystem::exists(library)) {
      throw NotSupported({.where = "backend " + name,
                          .expected = std::string(kCheckedLibrary) + " beside liblockstep_reference.so",
                          .got = "no such file",
                          .fix = "Build the simulator, or choose another backend."});
    }
    return wrap_by_plugin(library, request, plugin_options(request, *inner), [&request, &inner] {
      auto inner_request = request;
      inner_request.name = *inner;
      return make_backend(inner_request);
    });
  }
  return make_from_plugin(name, request, plugin_options(request, "gloo"));
}

}  // namespace lockstep::comm
