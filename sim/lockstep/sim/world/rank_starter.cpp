#include "lockstep/sim/world/rank_starter.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "lockstep/base/error.h"
#include "lockstep/launch/caught_signals.h"
#include "lockstep/launch/child_process.h"
#include "lockstep/launch/rank_report.h"
#include "lockstep/sim/world/terminal.h"

namespace lockstep::sim {
namespace {

void connect(const RankStart& start) {
  if (!start.has_input) {
    const launch::Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
    dup2(nothing.number(), STDIN_FILENO);
  }
  if (start.streams.output) dup2(start.streams.output.number(), STDOUT_FILENO);
  if (start.streams.errors) dup2(start.streams.errors.number(), STDERR_FILENO);
  if (!start.streams.output && start.stdout_to_stderr) dup2(STDERR_FILENO, STDOUT_FILENO);
}

[[noreturn]] void run_body(RankStart& start, int report) {
  for (const int descriptor : start.not_for_ranks) close(descriptor);
  start.streams = {};  // they are 1 and 2 by now
  int code = 1;
  try {
    code = start.body(start.variables);
  } catch (const std::exception& error) {
    launch::write_report(report, std::string(kind_of(error)), brief(error));
  }
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  _exit(code);  // not exit: what was registered before the fork is not the rank's
}

[[noreturn]] void run_program(RankStart& start, int report) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : start.variables) variables.push_back(name + "=" + value);
  auto argv = launch::pointers_to(start.argv);
  auto envp = launch::pointers_to(variables);
  execve(start.program.c_str(), argv.data(), envp.data());
  launch::write_report(report, kCannotStart, start.program + ": " + std::strerror(errno));
  _exit(127);
}

[[noreturn]] void be_rank(RankStart& start, pid_t guardian, int report) {
  launch::lead_own_group(guardian);
  launch::CaughtSignals::restore_in_child();
  if (start.has_terminal) give_terminal_to(getpid());
  connect(start);
  sigprocmask(SIG_SETMASK, &start.signal_mask, nullptr);
  fcntl(report, F_SETFD, 0);
  if (start.body) run_body(start, report);
  run_program(start, report);
}

}  // namespace

StartedRank start_rank(RankStart start) {
  auto report = launch::make_pipe();
  start.variables["LOCKSTEP_REPORT_FD"] = std::to_string(report.write.number());
  const pid_t guardian = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    throw RuntimeError({.where = "sim", .expected = "to start a rank", .got = std::strerror(errno)});
  }
  if (pid == 0) {
    start.not_for_ranks.push_back(report.read.number());
    be_rank(start, guardian, report.write.number());
  }
  setpgid(pid, pid);  // as the rank does itself: whoever comes first, its group exists from here on
  return {.pid = pid, .report = std::move(report.read)};
}

}  // namespace lockstep::sim
