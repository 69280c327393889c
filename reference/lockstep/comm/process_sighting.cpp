#include "lockstep/comm/process_sighting.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace lockstep::comm {
namespace {

struct Stat {
  char state = '?';
  unsigned long long start_time = 0;
};

// Fields 3 and 22 of /proc/<pid>/stat (proc(5)). The name in field 2 may hold blanks and brackets, so the count starts
// behind the last bracket.
std::optional<Stat> read_stat(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  Stat stat;
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  fields >> stat.start_time;
  return stat;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  // Containers may share a name, but not the numbers of their processes.
  std::error_code ignored;
  return std::string(name.data()) + " " + std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

}  // namespace

ProcessId this_process() {
  const int pid = getpid();
  return {.host = host_name(), .pid = pid, .start_time = start_time_of(pid).value_or(0)};
}

std::optional<unsigned long long> start_time_of(int pid) {
  const auto stat = read_stat(pid);
  if (!stat) return std::nullopt;
  return stat->start_time;
}

ProcessState state_of(const ProcessId& process) {
  if (process.host != host_name()) return ProcessState::unknown;
  const auto stat = read_stat(process.pid);
  if (!stat || stat->start_time != process.start_time) return ProcessState::gone;
  if (stat->state == 'Z' || stat->state == 'X') return ProcessState::gone;
  return stat->state == 'T' || stat->state == 't' ? ProcessState::stopped : ProcessState::alive;
}

}  // namespace lockstep::comm
