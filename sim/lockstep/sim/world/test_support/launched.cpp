#include "lockstep/sim/world/test_support/launched.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "lockstep/sim/world/processes.h"
#include "lockstep/sim/world/test_support/fake_job_view.h"

namespace lockstep::sim::test {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Folder::Folder() {
  auto pattern = (std::filesystem::temp_directory_path() / "world-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Terminal::Terminal() : keyboard(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  grantpt(keyboard.number());
  unlockpt(keyboard.number());
  terminal = launch::Descriptor(open(ptsname(keyboard.number()), O_RDWR | O_NOCTTY | O_CLOEXEC));
}

void Terminal::type(const std::string& text) const {
  if (write(keyboard.number(), text.data(), text.size()) < 0) throw std::runtime_error("the terminal takes nothing");
}

Variables own_environment() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string line(*entry);
    const auto equals = line.find('=');
    variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}

LaunchOptions shell(const Folder& folder, std::optional<int> num_ranks, const std::string& script) {
  LaunchOptions options{.num_ranks = num_ranks, .argv = {"sh", "-c", script}, .environment = own_environment()};
  options.environment["F"] = folder.path().string();
  return options;
}

namespace {

[[noreturn]] void launch(const Folder& folder, LaunchOptions options, const Streams& streams) {
  const auto redirect = [&](int given, const char* name, int flags, int to) {
    const int file = given >= 0 ? given : open(folder.file(name).c_str(), flags | O_CLOEXEC, 0600);
    dup2(file, to);
  };
  redirect(streams.input, "input", O_RDONLY, STDIN_FILENO);
  redirect(streams.output, "output", O_WRONLY | O_CREAT | O_APPEND, STDOUT_FILENO);
  redirect(-1, "errors", O_WRONLY | O_CREAT | O_APPEND, STDERR_FILENO);
  options.tell = [](std::string_view text) { dprintf(STDERR_FILENO, "told: %.*s\n", int(text.size()), text.data()); };
  int code = 2;
  try {
    const auto path = folder.path();
    const auto result = run(options, [path](const std::string&) { return std::make_unique<FakeJobView>(path); });
    std::ofstream(folder.file("result")) << result.verdict;
    for (const auto& rank : result.ranks) std::ofstream(folder.file("held" + std::to_string(rank.rank))) << rank.held();
    code = result.exit_code;
  } catch (const std::exception& error) {
    std::ofstream(folder.file("error")) << error.what();
  }
  _exit(code);
}

}  // namespace

Launched::Launched(const Folder& folder, LaunchOptions options, const Streams& streams) : folder_(&folder) {
  std::ofstream(folder.file("input")) << streams.text;
  pid_ = fork();
  if (pid_ == 0) launch(folder, std::move(options), streams);
}

Launched::~Launched() {
  if (pid_ > 0) wait();
}

pid_t Launched::guardian() const {
  for (const auto& process : descendants_of_this_process()) {
    if (process.parent == pid_) return process.pid;
  }
  return 0;
}

int Launched::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

VerdictJson Launched::verdict() const { return VerdictJson::parse(text_of(folder_->file("result")), nullptr, false); }
std::string Launched::error() const { return text_of(folder_->file("error")); }
std::string Launched::output() const { return text_of(folder_->file("output")); }
std::string Launched::errors() const { return text_of(folder_->file("errors")); }

bool holds_soon(const std::function<bool()>& condition) {
  for (const auto end = steady_clock::now() + std::chrono::seconds(10); steady_clock::now() < end;) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

double seconds_until_nothing_lives() {
  const auto begin = steady_clock::now();
  const auto passed = [begin] { return std::chrono::duration<double>(steady_clock::now() - begin).count(); };
  while (passed() < 20) {
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return passed();
    if (ended == 0) std::this_thread::sleep_for(milliseconds(2));
  }
  return passed();
}

}  // namespace lockstep::sim::test
