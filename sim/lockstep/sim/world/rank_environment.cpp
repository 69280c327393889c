#include "lockstep/sim/world/rank_environment.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "lockstep/base/error.h"
#include "lockstep/launch/descriptor.h"

namespace lockstep::sim {
namespace {

using Json = nlohmann::ordered_json;

double seconds_of(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }

std::string checked_backend(const Variables& environment) {
  const auto found = environment.find("LOCKSTEP_BACKEND");
  if (found == environment.end() || found->second.empty()) return "checked";
  const auto& asked = found->second;
  return asked == "checked" || asked.starts_with("checked:") ? asked : "checked:" + asked;
}

// What the ranks' checking core has to know; docs/reference/environment.md has it under LOCKSTEP_SIM_SPEC.
std::string spec_of(const LaunchOptions& options, bool is_debugged) {
  Json spec = {{"launched", true}, {"strict_places", options.strict_places}};
  if (!options.function.empty()) spec["function"] = options.function;
  if (options.stall) spec["stall_s"] = seconds_of(*options.stall);
  if (options.device_memory_bytes) spec["device_memory_bytes"] = *options.device_memory_bytes;
  if (options.on_verdict != OnVerdict::end) spec["hold"] = true;  // ranks stay in their waits until they are ended
  if (options.debugged) spec["frozen"] = true;
  if (is_debugged) spec["paused"] = true;
  return spec.dump();
}

void set_unless_set(Variables& variables, const std::string& name, const std::string& value) {
  auto& slot = variables[name];
  if (slot.empty()) slot = value;
}

bool is_free(int port) {
  const launch::Descriptor opened(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);  // stores listen on all addresses
  return bind(opened.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

bool has_nvidia_device() {
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidia0", ignored) ||
         std::filesystem::exists("/proc/driver/nvidia/gpus", ignored);
}

int free_port() {
  constexpr int kFirst = 20000;
  constexpr int kLast = 32000;  // from 32768 on Linux hands them out
  std::minstd_rand random(static_cast<unsigned>(getpid() * 31));
  std::uniform_int_distribution<int> any(kFirst, kLast);
  for (int i = 0; i < 1000; ++i) {
    if (const int port = any(random); is_free(port)) return port;
  }
  throw RuntimeError({.where = "sim", .expected = "a free port", .got = "none of 1000 that were tried"});
}

Variables job_variables(const LaunchOptions& options, const std::string& job, bool has_gpu) {
  auto variables = options.environment;
  variables["LOCKSTEP_SIM"] = "1";
  variables["LOCKSTEP_BACKEND"] = checked_backend(options.environment);
  variables["LOCKSTEP_JOB"] = job;
  variables["LOCKSTEP_CHECK"] = options.check;
  variables["LOCKSTEP_SIM_SPEC"] = spec_of(options, /*is_debugged=*/false);
  variables.erase("LOCKSTEP_REPORT_FD");                          // of a launcher above us
  if (options.debugged) variables["LOCKSTEP_TIMEOUT"] = "86400";  // a day: nobody hurries the user at the debugger
  set_unless_set(variables, "OMP_NUM_THREADS", "1");
  if (!has_gpu) set_unless_set(variables, "ACCELERATE_USE_CPU", "1");
  std::error_code ignored;
  const auto python = python_folder_of(std::filesystem::read_symlink("/proc/self/exe", ignored));
  if (python) prepend_to_python_path(variables, *python);
  return variables;
}

std::optional<std::filesystem::path> python_folder_of(const std::filesystem::path& program) {
  const auto prefix = program.parent_path().parent_path();
  for (const auto& folder : {prefix / "python", prefix / "share" / "lockstep" / "python"}) {
    std::error_code ignored;
    if (std::filesystem::exists(folder / "lockstep" / "__init__.py", ignored)) return folder;
  }
  return std::nullopt;
}

void prepend_to_python_path(Variables& variables, const std::filesystem::path& folder) {
  auto& path = variables["PYTHONPATH"];
  path = folder.string() + (path.empty() ? "" : ":" + path);
}

void set_rank(Variables& variables, const LaunchOptions& options, int rank, int port) {
  variables["RANK"] = variables["LOCAL_RANK"] = std::to_string(rank);
  variables["WORLD_SIZE"] = variables["LOCAL_WORLD_SIZE"] = std::to_string(*options.num_ranks);
  variables["MASTER_ADDR"] = "127.0.0.1";
  variables["MASTER_PORT"] = std::to_string(port);
  if (options.is_debugged(rank)) variables["LOCKSTEP_SIM_SPEC"] = spec_of(options, /*is_debugged=*/true);
}

}  // namespace lockstep::sim
