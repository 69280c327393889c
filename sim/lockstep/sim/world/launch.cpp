#include "lockstep/sim/world/launch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "lockstep/base/error.h"
#include "lockstep/sim/world/command.h"
#include "lockstep/sim/world/guardian.h"
#include "lockstep/sim/world/guardian_channel.h"
#include "lockstep/sim/world/job_front.h"
#include "lockstep/sim/world/processes.h"
#include "lockstep/sim/world/rank_environment.h"
#include "lockstep/sim/world/terminal.h"

namespace lockstep::sim {
namespace {

constexpr auto kWhere = "sim";

bool is_check_level(const std::string& level) {
  if (level == "off" || level == "full") return true;
  constexpr std::string_view kSampled = "sampled:";
  if (!level.starts_with(kSampled)) return false;
  int every = 0;
  const auto* last = level.data() + level.size();
  const auto [end, error] = std::from_chars(level.data() + kSampled.size(), last, every);
  return error == std::errc() && end == last && every >= 1;
}

void require(bool holds, const char* expected, const std::string& got, const std::string& fix = "") {
  if (!holds) throw InvalidArgument({.where = kWhere, .expected = expected, .got = got, .fix = fix});
}

void check(const LaunchOptions& options) {
  const int num_ranks = options.num_ranks.value_or(1);
  require(num_ranks >= 1, "at least one rank", std::to_string(num_ranks));
  require(!options.argv.empty() || options.body, "a program", "none", "Put it last: lockstep sim -n 2 -- ./program");
  if (const auto launcher = known_launcher(options.argv); launcher && options.num_ranks) {
    throw InvalidArgument({.where = kWhere,
                           .expected = "with -n, a program that is one rank",
                           .got = *launcher + ", which starts ranks by itself",
                           .fix = "Leave -n out: the ranks that " + *launcher + " starts are watched."});
  }
  require(is_check_level(options.check), "a check level: off, sampled:N or full", "'" + options.check + "'");
  require(!options.timeout || options.timeout->count() > 0, "a positive time for the run", "one that is not");
  require(!options.stall || options.stall->count() > 0, "a positive time for a stall", "one that is not");
  if (!options.gdb_rank) return;
  require(options.num_ranks && !options.body, "ranks of a program to debug one of", "a command that starts them itself",
          "Give their number: -n.");
  require(*options.gdb_rank >= 0 && *options.gdb_rank < num_ranks, "a rank of the world to debug",
          std::to_string(*options.gdb_rank) + " of " + std::to_string(num_ranks));
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

// One pair of pipes per rank: the guardian's ranks write, we read. A rank under gdb has the terminal itself.
struct Streams {
  std::vector<RankStreams> ranks;
  std::vector<RankStreams> ours;

  explicit Streams(const LaunchOptions& options) {
    const int count = options.num_ranks.value_or(1);
    ranks.resize(static_cast<std::size_t>(count));
    ours.resize(ranks.size());
    if (options.output == RankOutput::inherited) return;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (options.gdb_rank == static_cast<int>(i)) continue;
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

LaunchResult run(const LaunchOptions& options, const JobViewFactory& make_view) {
  check(options);
  const auto path_entry = options.environment.find("PATH");
  const auto path = path_entry == options.environment.end() ? "/usr/local/bin:/usr/bin:/bin" : path_entry->second;
  GuardianOrders orders{.options = options, .job = new_job_name(options.environment)};
  if (!options.body) orders.program = find_program(options.argv.front(), path);
  if (options.gdb_rank) orders.gdb = find_gdb(path);
  orders.has_gpu = has_nvidia_device();
  orders.group_at_terminal = group_at_terminal();
  sigprocmask(SIG_SETMASK, nullptr, &orders.signal_mask);
  if (!orders.has_gpu && options.tell && !options.is_quiet) {
    options.tell("no GPU is here: ranks run with ACCELERATE_USE_CPU=1");
  }

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
