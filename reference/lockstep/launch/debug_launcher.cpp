#include "lockstep/launch/debug_launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "lockstep/base/duration.h"
#include "lockstep/base/logging.h"
#include "lockstep/comm/failure_board.h"
#include "lockstep/launch/caught_signals.h"
#include "lockstep/launch/rank_process.h"
#include "lockstep/launch/rank_watcher.h"
#include "lockstep/state/environment.h"
#include "lockstep/state/placement.h"

namespace lockstep::launch {
namespace {

constexpr auto kSpawnVariable = "LOCKSTEP_SPAWN";
std::atomic<int> num_calls{0};

/// A folder that goes with the scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto pattern = (std::filesystem::temp_directory_path() / "lockstep-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw FileError("debug_launcher: no temporary folder at " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

state::Environment environment_of_rank(int rank, int num_processes, const std::filesystem::path& store,
                                       std::chrono::milliseconds timeout) {
  auto environment = state::Environment::of_process();
  environment.set("RANK", std::to_string(rank));
  environment.set("LOCAL_RANK", std::to_string(rank));
  environment.set("WORLD_SIZE", std::to_string(num_processes));
  environment.set("LOCAL_WORLD_SIZE", std::to_string(num_processes));
  environment.set("MASTER_ADDR", "127.0.0.1");
  environment.set("MASTER_PORT", "29500");
  environment.set("ACCELERATE_MIXED_PRECISION", "no");
  environment.set("ACCELERATE_USE_CPU", "yes");
  environment.set("GLOO_SOCKET_IFNAME", "lo");
  environment.set("FORK_LAUNCHED", "1");
  environment.set("ACCELERATE_DEBUG_RDV_FILE", store);
  environment.set("OMP_NUM_THREADS", "1");
  environment.set("LOCKSTEP_TIMEOUT", fmt::format("{:.3f}", seconds_of(timeout)));
  return environment;
}

std::size_t num_threads_of_process() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

void require_one_thread() {
  const auto threads = num_threads_of_process();
  if (threads == 1) return;
  throw InvalidArgument({.where = "debug_launcher(start=fork)",
                         .expected = "a process with one thread, since a fork copies only the caller's",
                         .got = fmt::format("{} threads", threads),
                         .fix =
                             "Pass start=spawn, or launch before the first parallel operation of LibTorch starts its "
                             "threads (at::set_num_threads(1) keeps it from doing so)."});
}

// In a program that was started anew for a rank: becomes that rank at the call that started it, and skips those before.
bool is_rank_of_earlier_call(const state::Environment& environment, int call, const std::function<void()>& function) {
  const auto wanted = environment.number(kSpawnVariable);
  if (!wanted) return false;
  if (call < *wanted) return true;
  const int report = environment.number("LOCKSTEP_REPORT_FD").value_or(STDERR_FILENO);
  auto own = environment;
  own.unset(kSpawnVariable);
  own.unset("LOCKSTEP_REPORT_FD");
  own.apply_to_process();
  run_rank(function, own, report);
}

RankProcess start_rank(const std::function<void()>& function, state::Environment environment, int rank, int call,
                       const DebugLauncherOptions& options) {
  if (options.start == Start::fork) return fork_rank(rank, function, environment, options.output);
  environment.set(kSpawnVariable, std::to_string(call));
  return spawn_rank(rank, environment, options.output);
}

}  // namespace

void debug_launcher(const std::function<void()>& function, int num_processes, const DebugLauncherOptions& options) {
  if (num_processes < 1) {
    throw InvalidArgument({.where = "debug_launcher",
                           .expected = "at least one process",
                           .got = fmt::format("num_processes {}", num_processes)});
  }
  const auto own_environment = state::Environment::of_process();
  const auto timeout =
      options.timeout.value_or(own_environment.seconds("LOCKSTEP_TIMEOUT").value_or(std::chrono::seconds(60)));
  require_positive("debug_launcher", timeout);
  const int call = ++num_calls;
  if (is_rank_of_earlier_call(own_environment, call, function)) return;
  if (options.start == Start::fork) require_one_thread();
  for (const auto& warning : state::unknown_variable_warnings(own_environment)) log::warning(warning);

  // Ends us, if a signal came, when everything below is gone: ranks, and the folder.
  const CaughtSignals signals(CaughtSignals::Afterwards::raise);
  const TemporaryFolder folder;
  const auto file = folder.path() / "store";
  const auto store = comm::Store::file(file, num_processes + 1, timeout);
  // The watcher owns each rank from its start, so that none is left behind when a later one cannot be started.
  RankWatcher watcher({store.with_prefix(state::attempt_prefix(own_environment)), {0, num_processes}}, timeout);
  for (int rank = 0; rank < num_processes; ++rank) {
    watcher.add(start_rank(function, environment_of_rank(rank, num_processes, file, timeout), rank, call, options));
  }
  if (auto failures = watcher.watch([&] { return signals.first() != 0; }); !failures.empty())
    throw ChildFailed(std::move(failures));
}

}  // namespace lockstep::launch
