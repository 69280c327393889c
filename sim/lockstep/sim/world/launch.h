#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sim {

/// A process's environment, as a value.
using Variables = std::map<std::string, std::string>;

enum class RankOutput {
  labelled,   ///< each line of a rank is printed with "[rank 0] " before it, stdout and stderr each to ours
  files,      ///< one file per rank in `log_folder`, rank0.log; while the rank writes, it is rank0.log.part
  kept,       ///< not shown; RankOutcome::log has the end of it
  inherited,  ///< ranks write where this process writes; nothing of it is kept
};

enum class OnVerdict {
  end,     ///< ranks get 2 s to end by themselves, then SIGTERM, then SIGKILL
  stacks,  ///< they stay as they are until the stacks of all their threads were told, and then get SIGTERM
  hold,    ///< they stay as they are, for a debugger, until somebody says Enter or Ctrl-C; `stacks` where stdin is no
           ///< terminal, since nobody could say so
};

/// A rank that runs under a debugger, and has the terminal. Nobody judges it, and the others' time-outs do not count.
struct DebuggedRank {
  enum class Debugger { gdb, pdb };
  int rank = 0;
  Debugger debugger = Debugger::gdb;
};

/// How a job is started and watched. The defaults are those of `lockstep sim`.
struct LaunchOptions {
  /// So many copies of the command are the ranks; none: it is started once, and the ranks that it starts are watched.
  std::optional<int> num_ranks;
  /// The program, looked for along PATH, and its arguments.
  std::vector<std::string> argv;
  /// Instead of `argv`: what a rank runs in its process, which is a copy of this one, and the exit code that it
  /// returns. Its variables are not yet those of the process.
  std::function<int(int rank, const Variables& variables)> body;
  std::string function;  ///< the one that a program with sim::main is to run; empty: its first
  /// What the ranks inherit; the variables of the simulation are added.
  Variables environment;

  RankOutput output = RankOutput::labelled;
  std::filesystem::path log_folder;
  bool colour = false;
  bool stdout_to_stderr = false;  ///< for the ranks' output: our stdout is for one document
  /// Gets what there is to tell while the job runs, one or more lines without the last line's end; none: untold.
  std::function<void(std::string_view)> tell;
  bool is_quiet = false;  ///< only what was asked for is told: stacks, and how to attach
  /// What ranks write once they end because of the verdict is not shown: mostly each of them repeats it. It stays in
  /// RankOutcome::log.
  bool holds_back = false;
  /// This program's own, for the document; may be empty.
  std::vector<std::string> command_line;

  std::optional<std::chrono::milliseconds> timeout;  ///< of the whole run, verdict `straggler`
  std::optional<std::chrono::milliseconds> stall;    ///< a rank may keep others waiting so long, verdict `straggler`
  std::string check = "full";                        ///< off, sampled:N, full
  bool strict_places = false;                        ///< differing call sites are a verdict
  std::optional<std::uint64_t> device_memory_bytes;  ///< the limit of each rank's pretend device

  std::optional<DebuggedRank> debugged;
  OnVerdict on_verdict = OnVerdict::end;

  [[nodiscard]] bool is_debugged(int rank) const { return debugged && debugged->rank == rank; }
};

/// How one rank ended; without `num_ranks`, the one entry is the command.
struct RankOutcome {
  int rank = 0;
  pid_t pid = 0;
  int exit_code = 0;  ///< valid unless `signal` is set
  int signal = 0;     ///< what ended it, 0 if nothing did
  double wall_s = 0;
  std::string log;  ///< the end of what it wrote, at most 1 MiB; empty when it went to a file or was inherited
  std::size_t num_bytes_held = 0;  ///< of `log`, at its end: they were not shown (LaunchOptions::holds_back)

  [[nodiscard]] std::string_view held() const { return std::string_view(log).substr(log.size() - num_bytes_held); }
};

struct LaunchResult {
  int exit_code = 0;    ///< base/exit_code.h; 128 + n when signal n ended the run
  std::string verdict;  ///< a JSON document (docs/reference/verdict.md), always there
  std::vector<RankOutcome> ranks;
  std::optional<double> stall_to_verdict_s;
};

/// Starts the ranks, watches them until all have ended or a verdict is known, ends what is left, and tells how it went.
/// For a process that has one thread.
///
/// However this process ends, by Ctrl-C or by SIGKILL, its ranks and all that they started end within 2 s, and so does
/// the job's shared memory: a child, the guardian, sees to it, and if the guardian is killed, this process does.
/// While it runs, SIGINT, SIGTERM, SIGHUP and SIGQUIT are caught where nobody else has decided about them; the first
/// ends the run with the verdict `interrupted`.
///
/// @throws InvalidArgument  for options that do not fit, a program that is missing or cannot be run, a known launcher
///                          (torchrun, mpirun ...) with num_ranks, and a program that refuses what it was asked to run
///                          (kRefused in rank_starter.h); nothing was run
LaunchResult run(const LaunchOptions& options);

}  // namespace lockstep::sim
