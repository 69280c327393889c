#include "lockstep/comm/backends.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/backend_makers.h"

namespace lockstep::comm {
namespace {

constexpr std::string_view kChecked = "checked";
constexpr auto kCheckedLibrary = "liblockstep_checked.so";

std::string plugin_options(const BackendRequest& request, const std::string& inner) {
  return nlohmann::json{{"timeout_ms", request.timeout.count()},
                        {"group", request.group},
                        {"inner", inner},
                        {"inner_options", nlohmann::json::object()},
                        {"level", "full"}}
      .dump();
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
    return make_from_plugin(library, request, plugin_options(request, *inner));
  }
  if (name.find('/') != std::string::npos || name.ends_with(".so")) {
    return make_from_plugin(name, request, plugin_options(request, "gloo"));
  }
  throw InvalidArgument(
      {.where = "backend",
       .expected = fmt::format("one of {}, or the path of a plug-in", fmt::join(backend_names(), ", ")),
       .got = "'" + name + "'",
       .fix = "Set LOCKSTEP_BACKEND to one of them."});
}

}  // namespace lockstep::comm
