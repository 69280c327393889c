#include "lockstep/sim/world/job_name.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <regex>
#include <set>
#include <stdexcept>

#include "lockstep/sim/check/board.h"
#include "lockstep/sim/check/process.h"
#include "lockstep/sim/world/processes.h"

namespace lockstep::sim {
namespace {

std::string namespace_of_process_numbers() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? std::to_string(status.st_ino) : "0";
}

// The job whose board this is ("lockstep-<job>-<number>"), if its launcher's number is one of ours and nobody has it.
std::optional<std::string> job_without_launcher(const std::string& board) {
  static const std::regex form(R"(lockstep-((?:.*-)?sim-(\d{1,9})-(\d{1,18})-(\d+))-\d+)");
  std::smatch parts;
  if (!std::regex_match(board, parts, form) || parts[4] != namespace_of_process_numbers()) return std::nullopt;
  if (start_time_of(std::stoi(parts[2])) == std::stoull(parts[3])) return std::nullopt;
  return parts[1];
}

bool has_living_rank(const std::string& board_name) {
  try {
    const auto board = Board::open_if_made("/" + board_name);
    if (!board) return false;  // its maker was killed while making it
    for (int rank = 0; rank < board->world_size(); ++rank) {
      const auto& seat = board->seat(rank);
      if (start_time_of(seat.pid) == seat.start_time.load()) return true;
    }
  } catch (const std::runtime_error&) {  // of another version, whose ranks ended with their launcher as ours do
  }
  return false;
}

}  // namespace

std::string new_job_name(const Variables& environment) {
  const auto own = "sim-" + std::to_string(getpid()) + "-" + std::to_string(start_time_of(getpid()).value_or(0)) + "-" +
                   namespace_of_process_numbers();
  const auto outer = environment.find("LOCKSTEP_JOB");
  return outer == environment.end() || outer->second.empty() ? own : outer->second + "-" + own;
}

void remove_shared_memory_of_dead_jobs() {
  std::set<std::string> dead;
  std::set<std::string> alive;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const auto board = entry.path().filename().string();
    const auto job = job_without_launcher(board);
    if (job) (has_living_rank(board) ? alive : dead).insert(*job);
  }
  for (const auto& job : dead) {
    if (!alive.contains(job)) remove_shared_memory_of(job);
  }
}

}  // namespace lockstep::sim
