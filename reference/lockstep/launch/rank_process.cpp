#include "lockstep/launch/rank_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <ATen/Parallel.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lockstep/state/rank_context.h"

namespace lockstep::launch {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  reset();
  number_ = other.release();
  return *this;
}

void Descriptor::reset() noexcept {
  if (number_ >= 0) close(std::exchange(number_, -1));
}

namespace {

struct Pipe {
  Descriptor read;
  Descriptor write;
};

[[noreturn]] void fail(const char* what) {
  throw RuntimeError({.where = "debug_launcher", .expected = what, .got = std::strerror(errno)});
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("a pipe");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
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

// A rank leads a process group of its own, so that whatever it starts can be ended with it, and dies with its launcher.
void become_rank_process(pid_t launcher) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(128 + SIGKILL);  // it died before the line above
}

void write_report(int report, const std::string& kind, const std::string& message) {
  const auto text = nlohmann::json{{"kind", kind}, {"message", message}}.dump(-1, ' ', false,
                                                                              nlohmann::json::error_handler_t::replace);
  std::size_t written = 0;
  while (written < text.size()) {
    const auto count = write(report, text.data() + written, text.size() - written);
    if (count <= 0) return;  // the launcher is gone
    written += static_cast<std::size_t>(count);
  }
}

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

void run_rank(const std::function<void()>& function, const state::Environment& environment, int report) {
  int code = 0;
  try {
    at::set_num_threads(1);  // its first act: a forked OpenMP team would hang in its first parallel region
    state::reset_process_rank();
    const auto rank = state::RankContext::from(environment);
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

  become_rank_process(launcher);
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
  auto argv = pointers(arguments);
  auto envp = pointers(variables);

  std::cout.flush();
  const pid_t launcher = getpid();
  const pid_t pid = vfork();  // nothing but system calls until exec: safe beside other threads
  if (pid < 0) fail("to start a rank");
  if (pid > 0) return ends_for_parent(rank, pid, pipes);

  become_rank_process(launcher);
  fcntl(pipes.report.write.number(), F_SETFD, 0);
  if (output == Output::labelled) {
    dup2(pipes.output.write.number(), STDOUT_FILENO);
    dup2(pipes.errors.write.number(), STDERR_FILENO);
  }
  execve("/proc/self/exe", argv.data(), envp.data());
  _exit(127);
}

std::optional<RankFailure> parse_report(int rank, const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return RankFailure{.rank = rank, .kind = json.value("kind", ""), .message = json.value("message", "")};
}

}  // namespace lockstep::launch
