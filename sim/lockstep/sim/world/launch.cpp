#include "lockstep/sim/world/launch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <stdexcept>

#include "lockstep/base/error.h"
#include "lockstep/sim/check/board_layout.h"
#include "lockstep/sim/check/checked_rank.h"
#include "lockstep/sim/world/command.h"
#include "lockstep/sim/world/guardian.h"
#include "lockstep/sim/world/guardian_channel.h"
#include "lockstep/sim/world/job_front.h"
#include "lockstep/sim/world/job_name.h"
#include "lockstep/sim/world/job_view.h"
#include "lockstep/sim/world/processes.h"
#include "lockstep/sim/world/rank_environment.h"
#include "lockstep/sim/world/terminal.h"

namespace lockstep::sim {
namespace {

constexpr auto kWhere = "sim";

void require(bool holds, const std::string& expected, const std::string& got, const std::string& fix = "") {
  if (!holds) throw InvalidArgument({.where = kWhere, .expected = expected, .got = got, .fix = fix});
}

void check_level(const std::string& level) {
  try {
    CheckOptions::with_level(level);
  } catch (const std::invalid_argument& error) {
    throw InvalidArgument(error.what());
  }
}

void check_limit(const std::optional<std::chrono::milliseconds>& limit, const char* of) {
  if (limit && limit->count() <= 0) {
    throw InvalidArgument({.where = kWhere,
                           .expected = std::string("a positive time for ") + of,
                           .got = std::to_string(limit->count()) + " ms"});
  }
}

void check(const LaunchOptions& options) {
  const int num_ranks = options.num_ranks.value_or(1);
  require(num_ranks >= 1 && num_ranks <= layout::kMaxRanks, "1 to " + std::to_string(layout::kMaxRanks) + " ranks",
          std::to_string(num_ranks));
  require(!options.argv.empty() || options.body, "a program", "none", "Put it last: lockstep sim -n 2 -- ./program");
  if (const auto launcher = known_launcher(options.argv); launcher && options.num_ranks) {
    throw InvalidArgument({.where = kWhere,
                           .expected = "with -n, a program that is one rank",
                           .got = *launcher + ", which starts ranks by itself",
                           .fix = "Leave -n out: the ranks that " + *launcher + " starts are watched."});
  }
  check_level(options.check);
  check_limit(options.timeout, "the run");
  check_limit(options.stall, "a stall");
  require(options.device_memory_bytes != 0, "more than no memory for a device", "0 bytes");
  if (!options.debugged) return;
  const int debugged = options.debugged->rank;
  require(options.num_ranks && !options.body, "ranks of a program to debug one of", "a command that starts them itself",
          "Give their number: -n.");
  require(debugged >= 0 && debugged < num_ranks, "a rank of the world to debug",
          std::to_string(debugged) + " of " + std::to_string(num_ranks));
}

std::string find_gdb(const std::string& path) {
  try {
    return find_program("gdb", path);
  } catch (const InvalidArgument&) {
    throw InvalidArgument({.where = kWhere,
                           .expected = "gdb along PATH",
                           .got = "none",
                           .fix = "Install it: apt-get install gdb (Debian, Ubuntu), dnf install gdb (Fedora)."});
  }
}

// What is started as a rank under a debugger.
Command debugged_command(const LaunchOptions& options, const std::string& program, const std::string& path) {
  if (options.debugged->debugger == DebuggedRank::Debugger::pdb) return {program, under_pdb(options.argv)};
  Command command{find_gdb(path), {"gdb", "-q", "--args", program}};
  command.argv.insert(command.argv.end(), options.argv.begin() + 1, options.argv.end());
  return command;
}

// One pair of pipes per rank: the guardian's ranks write, we read. A rank under a debugger has the terminal itself.
struct Streams {
  std::vector<RankStreams> ranks;
  std::vector<RankStreams> ours;

  explicit Streams(const LaunchOptions& options) {
    const int count = options.num_ranks.value_or(1);
    ranks.resize(static_cast<std::size_t>(count));
    ours.resize(ranks.size());
    if (options.output == RankOutput::inherited) return;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (options.is_debugged(static_cast<int>(i))) continue;
      auto output = launch::make_pipe();
      auto errors = launch::make_pipe();
      ranks[i] = {.output = std::move(output.write), .errors = std::move(errors.write)};
      ours[i] = {.output = std::move(output.read), .errors = std::move(errors.read)};
    }
  }
};

// All that the guardian process does.
[[noreturn]] void guard(GuardianOrders orders, const JobViewFactory& make_view, int channel) {
  try {
    auto view = make_view(orders.job);
    Guardian(std::move(orders), std::move(view), channel).run();
  } catch (const InvalidArgument& error) {
    send_to_visible(channel, {{"usage", error.what()}});
  } catch (const std::exception& error) {
    send_to_visible(channel, {{"error", error.what()}});
  }
  _exit(0);  // not exit: what was registered before the fork is the visible process's
}

}  // namespace

LaunchResult run(const LaunchOptions& options) { return run(options, view_boards_of); }

LaunchResult run(const LaunchOptions& asked, const JobViewFactory& make_view) {
  check(asked);
  auto options = asked;
  if (options.on_verdict == OnVerdict::hold && isatty(STDIN_FILENO) == 0) {
    options.on_verdict = OnVerdict::stacks;
    if (options.tell) options.tell("stdin is no terminal, where Enter would end a hold: stacks will be shown instead");
  }
  const auto path_entry = options.environment.find("PATH");
  const auto path = path_entry == options.environment.end() ? "/usr/local/bin:/usr/bin:/bin" : path_entry->second;
  GuardianOrders orders{.options = options, .job = new_job_name(options.environment)};
  if (!options.body) orders.command = {find_program(options.argv.front(), path), options.argv};
  if (options.debugged) orders.debugged_command = debugged_command(options, orders.command.program, path);
  orders.has_gpu = has_nvidia_device();
  orders.group_at_terminal = group_at_terminal();
  sigprocmask(SIG_SETMASK, nullptr, &orders.signal_mask);
  if (!orders.has_gpu && options.tell && !options.is_quiet) {
    options.tell("no GPU is here: ranks run with ACCELERATE_USE_CPU=1");
  }

  remove_shared_memory_of_dead_jobs();
  Streams streams(options);
  orders.streams = std::move(streams.ranks);
  auto channel = GuardianChannel::make();
  JobFront front(options, orders.job, std::move(channel.visible), std::move(streams.ours));
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);  // or both processes would print what is buffered
  const pid_t guardian = fork();
  if (guardian < 0) {
    throw RuntimeError({.where = kWhere, .expected = "to start a process", .got = std::strerror(errno)});
  }
  if (guardian == 0) {
    front.close_in_child();
    guard(std::move(orders), make_view, channel.guardian.number());
  }
  channel.guardian.reset();
  orders.streams.clear();
  return front.watch(guardian, make_view);
}

}  // namespace lockstep::sim
