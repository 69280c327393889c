#include "lockstep/sim/check/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

namespace lockstep::sim {
namespace {

// Files of /proc are short and are read in one piece; no streams, since this runs every 50 ms in every rank.
std::string read_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 4096> buffer{};
  const auto size = read(file, buffer.data(), buffer.size());
  close(file);
  return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
}

// Field `number` of a stat file, counted as proc(5) does. The second one, the name, may hold blanks and brackets.
std::string_view stat_field(std::string_view stat, int number) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return {};
  auto rest = stat.substr(name_end + 2);
  for (int field = 3; field < number; ++field) {
    const auto blank = rest.find(' ');
    if (blank == std::string_view::npos) return {};
    rest.remove_prefix(blank + 1);
  }
  return rest.substr(0, rest.find(' '));
}

std::uint64_t number_of(std::string_view text) { return std::strtoull(std::string(text).c_str(), nullptr, 10); }

// The system call that a thread of this process sleeps in: "number argument0 argument1 ...". Empty when it runs.
std::string system_call_of(pid_t tid) {
  auto text = read_file("/proc/self/task/" + std::to_string(tid) + "/syscall");
  const bool is_call = !text.empty() && text.front() >= '0' && text.front() <= '9';
  return is_call ? text : std::string();
}

// A pid has 22 bits, and a time in hundredths of a second has enough in 41 for centuries.
constexpr int kTimeBits = 41;
constexpr std::uint64_t kIsProcess = std::uint64_t{1} << 63;

bool is_futex(const std::string& call) { return !call.empty() && std::atol(call.c_str()) == SYS_futex; }

}  // namespace

std::optional<std::uint64_t> start_time_of(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto state = stat_field(stat, 3);
  if (state.empty() || state == "Z" || state == "X") return std::nullopt;
  return number_of(stat_field(stat, 22));
}

std::uint64_t id_of(pid_t pid) {
  return kIsProcess | static_cast<std::uint64_t>(pid) << kTimeBits | start_time_of(pid).value_or(0);
}

bool is_alive(std::uint64_t id) {
  const auto pid = static_cast<pid_t>((id & ~kIsProcess) >> kTimeBits);
  return start_time_of(pid) && id_of(pid) == id;
}

std::vector<ThreadLook> threads_of_this_process() {
  std::vector<ThreadLook> threads;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return threads;
  while (const auto* entry = readdir(folder)) {
    const auto tid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (tid == 0) continue;
    const auto stat = read_file("/proc/self/task/" + std::to_string(tid) + "/stat");
    const auto state = stat_field(stat, 3);
    if (state.empty()) continue;
    threads.push_back({.tid = tid,
                       .state = state.front(),
                       .cpu_ticks = number_of(stat_field(stat, 14)) + number_of(stat_field(stat, 15))});
  }
  closedir(folder);
  return threads;
}

bool is_thread_of_this_process(pid_t tid) {
  return access(("/proc/self/task/" + std::to_string(tid)).c_str(), F_OK) == 0;
}

bool may_act_by_itself(pid_t tid) {
  const auto call = system_call_of(tid);
  if (call.empty()) return false;  // it runs, or is gone
  if (!is_futex(call)) return true;
  // The fourth argument of a futex wait is its time-out.
  std::string_view rest = call;
  for (int field = 0; field < 4; ++field) rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  return !rest.starts_with("0x0 ");
}

bool is_thread_of_libtorch(pid_t tid) {
  return read_file("/proc/self/task/" + std::to_string(tid) + "/comm").starts_with("pt_");
}

bool sleeps_in_futex(pid_t tid) { return is_futex(system_call_of(tid)); }

}  // namespace lockstep::sim
