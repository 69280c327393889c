#include "lockstep/launch/rank_process.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/launch/caught_signals.h"
#include "lockstep/launch/child_process.h"
#include "lockstep/launch/rank_report.h"
#include "lockstep/state/rank_context.h"

namespace lockstep::launch {

namespace {

[[noreturn]] void fail(const char* what) {
  throw RuntimeError({.where = "debug_launcher", .expected = what, .got = std::strerror(errno)});
}

struct Pipes {
  Pipe report = make_pipe();
  Pipe output;
  Pipe errors;

  explicit Pipes(Output how) {
    if (how == Output::inherited) return;
    output = make_pipe();
    errors = make_pipe();
  }
};

RankProcess ends_for_parent(int rank, pid_t pid, Pipes& pipes) {
  setpgid(pid, pid);  // as the rank does itself: whoever comes first, its group exists from here on
  return {.rank = rank,
          .pid = pid,
          .report = std::move(pipes.report.read),
          .output = std::move(pipes.output.read),
          .errors = std::move(pipes.errors.read)};
}

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

}  // namespace

void run_rank(const std::function<void()>& function, const state::Environment& environment, int report) {
  int code = 0;
  try {
    at::set_num_threads(1);  // its first act: a forked OpenMP team would hang in its first parallel region
    state::reset_process_rank();
    const auto rank = state::RankContext::for_process(environment);
    const state::StateScope scope(rank);
    const auto fail_with = [&](const std::exception& error) {
      write_report(report, std::string(kind_of(error)), brief(error));
      rank->report_failure(error);
      code = 1;
    };
    try {
      function();
      write_report(report, kOk, "");
      rank->report_exit(0);  // a reason for those who still wait for it
    } catch (const std::exception& error) {
      fail_with(error);
    } catch (...) {
      fail_with(RuntimeError("an exception of unknown type"));
    }
    state::reset_process_rank();  // what it still has to write is written with it
  } catch (const std::exception& error) {
    write_report(report, std::string(kind_of(error)), brief(error));
    code = 1;
  }
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  _exit(code);  // not exit: what the launcher registered to be done at exit is the launcher's
}

RankProcess fork_rank(int rank, const std::function<void()>& function, const state::Environment& environment,
                      Output output) {
  Pipes pipes(output);
  std::cout.flush();
  std::fflush(nullptr);  // or both processes would print what is buffered
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail("to fork a rank");
  if (pid > 0) return ends_for_parent(rank, pid, pipes);

  lead_own_group(launcher);
  CaughtSignals::restore_in_child();
  if (output == Output::labelled) {
    dup2(pipes.output.write.number(), STDOUT_FILENO);
    dup2(pipes.errors.write.number(), STDERR_FILENO);
  }
  environment.apply_to_process();
  run_rank(function, environment, pipes.report.write.number());
}

RankProcess spawn_rank(int rank, const state::Environment& environment, Output output) {
  Pipes pipes(output);
  auto arguments = own_arguments();
  auto rank_environment = environment;
  rank_environment.set("LOCKSTEP_REPORT_FD", std::to_string(pipes.report.write.number()));
  std::vector<std::string> variables;
  for (const auto& [name, value] : rank_environment.variables()) variables.push_back(name + "=" + value);
  auto argv = pointers_to(arguments);
  auto envp = pointers_to(variables);

  std::cout.flush();
  const pid_t launcher = getpid();
  const pid_t pid = vfork();  // nothing but system calls until exec: safe beside other threads
  if (pid < 0) fail("to start a rank");
  if (pid > 0) return ends_for_parent(rank, pid, pipes);

  lead_own_group(launcher);
  fcntl(pipes.report.write.number(), F_SETFD, 0);
  if (output == Output::labelled) {
    dup2(pipes.output.write.number(), STDOUT_FILENO);
    dup2(pipes.errors.write.number(), STDERR_FILENO);
  }
  execve("/proc/self/exe", argv.data(), envp.data());
  _exit(127);
}

}  // namespace lockstep::launch
