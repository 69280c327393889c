#include "env_command.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <sys/utsname.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "lockstep/comm/backends.h"
#include "lockstep/state/environment.h"
#include "lockstep/state/environment_check.h"
#include "lockstep/state/placement.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::ordered_json;

Json devices() {
  Json list = Json::array({"cpu"});
  if (at::hasCUDA()) {
    for (int device = 0; device < torch::cuda::device_count(); ++device)
      list.push_back("cuda:" + std::to_string(device));
  }
  return list;
}

// The file that LibTorch was loaded from: a machine may well hold several.
std::string torch_path() {
  Dl_info info{};
  const bool is_known = dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &info) != 0;
  return is_known ? std::filesystem::weakly_canonical(info.dli_fname).string() : "unknown";
}

Json platform() {
  utsname name{};
  uname(&name);
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

// The variables that decide how a rank sees itself, as far as they are set.
Json variables(const state::Environment& environment) {
  Json set = Json::object();
  for (const auto& [name, value] : environment.variables()) {
    static const std::vector<std::string> prefixes = {"LOCKSTEP_", "ACCELERATE_", "OMPI_COMM_WORLD_", "PMI_", "MV2_",
                                                      "GLOO_",     "NCCL_",       "TORCHELASTIC_"};
    static const std::vector<std::string> names = {"SLURM_PROCID",         "SLURM_NTASKS",   "SLURM_LOCALID",
                                                   "SLURM_STEP_ID",        "MASTER_ADDR",    "FORK_LAUNCHED",
                                                   "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"};
    static const auto rank_names = state::rank_variables();
    const bool is_named =
        std::ranges::find(names, name) != names.end() || std::ranges::find(rank_names, name) != rank_names.end();
    const bool has_prefix =
        std::ranges::any_of(prefixes, [&name](const auto& prefix) { return name.starts_with(prefix); });
    if (is_named || has_prefix) set[name] = value;
  }
  return set;
}

std::vector<std::string> warnings(const state::Environment& environment) {
  auto all = state::unknown_variable_warnings(environment);
  for (auto& refused : state::refused_variable_warnings(environment)) all.push_back(std::move(refused));
  return all;
}

Json describe() {
  const auto environment = state::Environment::of_process();
  return {{"lockstep", LOCKSTEP_VERSION},
          {"libtorch", TORCH_VERSION},
          {"libtorch_path", torch_path()},
          {"compiler", __VERSION__},
          {"build", LOCKSTEP_BUILD_TYPE},
          {"gpu_build",
#ifdef USE_C10D_NCCL
           true
#else
           false
#endif
          },
          {"platform", platform()},
          {"cores", std::thread::hardware_concurrency()},
          {"threads", at::get_num_threads()},
          {"devices", devices()},
          {"backends", comm::backend_names()},
          {"variables", variables(environment)},
          {"warnings", warnings(environment)}};
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const auto& item : value) text += (text.empty() ? "" : ", ") + text_of(item);
  return text;
}

void print(const Json& description) {
  for (const auto& [name, value] : description.items()) {
    if (name == "variables") {
      std::cout << "variables:" << (value.empty() ? " none set" : "") << '\n';
      for (const auto& [variable, setting] : value.items()) {
        std::cout << "  " << variable << "=" << setting.get<std::string>() << '\n';
      }
    } else if (name == "warnings") {
      for (const auto& warning : value) std::cerr << "warning: " << warning.get<std::string>() << '\n';
    } else {
      std::cout << name << ": " << text_of(value) << '\n';
    }
  }
}

}  // namespace

void add_env_command(CLI::App& app) {
  auto* command =
      app.add_subcommand("env", "Show versions, devices, backends and variables in force, for a bug report");
  command->footer("Example: lockstep env --json");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "print one JSON document");
  command->callback([as_json] {
    const auto description = describe();
    if (*as_json) {
      std::cout << description.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    } else {
      print(description);
    }
  });
}

}  // namespace lockstep::cli
