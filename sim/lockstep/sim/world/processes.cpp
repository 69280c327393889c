#include "lockstep/sim/world/processes.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>

namespace lockstep::sim {
namespace {

using std::chrono::steady_clock;

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::filesystem::path folder_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

// Lines "Name:\tvalue"; empty when the process is gone.
std::string status_of(pid_t pid) { return text_of(folder_of(pid) / "status"); }

std::string_view value_in(std::string_view status, std::string_view name) {
  while (!status.empty()) {
    const auto line = status.substr(0, status.find('\n'));
    status.remove_prefix(std::min(line.size() + 1, status.size()));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(":\t")) return line.substr(name.size() + 2);
  }
  return {};
}

template <typename Number>
Number number_in(std::string_view status, std::string_view name, int base = 10) {
  const auto value = value_in(status, name);
  Number number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number, base);
  return number;
}

std::vector<ProcessInfo> all_processes() {
  std::vector<ProcessInfo> processes;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    const auto status = status_of(pid);
    if (status.empty()) continue;  // it ended while we looked
    const auto state = value_in(status, "State");
    processes.push_back({.pid = pid,
                         .parent = number_in<pid_t>(status, "PPid"),
                         .is_zombie = state.starts_with('Z') || state.starts_with('X'),
                         .command = "(" + std::string(value_in(status, "Name")) + ")"});
  }
  return processes;
}

std::string command_of(const ProcessInfo& process) {
  auto arguments = text_of(folder_of(process.pid) / "cmdline");
  while (!arguments.empty() && arguments.back() == '\0') arguments.pop_back();
  std::ranges::replace(arguments, '\0', ' ');
  return arguments.empty() ? process.command : arguments;
}

}  // namespace

SubreaperScope::SubreaperScope() {
  prctl(PR_GET_CHILD_SUBREAPER, &before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

SubreaperScope::~SubreaperScope() { prctl(PR_SET_CHILD_SUBREAPER, before_); }

std::vector<pid_t> children_of_this_process() {
  std::vector<pid_t> children;
  for (const auto& process : all_processes()) {
    if (process.parent == getpid()) children.push_back(process.pid);
  }
  return children;
}

std::vector<ProcessInfo> descendants_of_this_process() {
  const auto processes = all_processes();
  std::vector<ProcessInfo> found = {{.pid = getpid()}};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& process : processes) {
      if (process.parent == found[i].pid) found.push_back(process);
    }
  }
  found.erase(found.begin());
  std::erase_if(found, [](const auto& process) { return process.is_zombie; });
  for (auto& process : found) process.command = command_of(process);
  return found;
}

// Only children are killed, whose numbers nobody else can get before we have reaped them; theirs become ours as they
// end, so that each round reaches one generation further.
bool end_descendants(const std::vector<pid_t>& spared) {
  const auto deadline = steady_clock::now() + std::chrono::seconds(5);
  while (true) {
    auto children = children_of_this_process();
    std::erase_if(children, [&](pid_t child) { return std::ranges::find(spared, child) != spared.end(); });
    if (children.empty()) return true;
    for (const pid_t child : children) kill(child, SIGKILL);
    std::erase_if(children, [](pid_t child) { return waitpid(child, nullptr, WNOHANG) != 0; });
    if (steady_clock::now() > deadline) return false;
    if (!children.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

pid_t tracer_of(pid_t pid) { return number_in<pid_t>(status_of(pid), "TracerPid"); }

bool catches(pid_t pid, int signal) {
  const auto caught = number_in<std::uint64_t>(status_of(pid), "SigCgt", /*base=*/16);
  return (caught >> static_cast<unsigned>(signal - 1) & 1U) != 0;
}

std::vector<std::string> remove_shared_memory_of(const std::string& job) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const auto name = entry.path().filename().string();
    const auto at = name.find(job);
    if (at == std::string::npos) continue;
    const auto next = at + job.size();
    if (next < name.size() && std::isdigit(static_cast<unsigned char>(name[next])) != 0) continue;  // another job's
    names.push_back(name);
  }
  for (const auto& name : names) shm_unlink(("/" + name).c_str());
  return names;
}

}  // namespace lockstep::sim
