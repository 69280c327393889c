#include "lockstep/sim/world/command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::sim {
namespace {

constexpr auto kWhere = "sim";

bool is_runnable(const std::string& file) {
  struct stat status {};
  return stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(file.c_str(), X_OK) == 0;
}

std::string reason_not_to_run(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return std::strerror(errno);
  if (S_ISDIR(status.st_mode)) return "a folder";
  return "a file that is not executable";
}

template <typename Names>
bool has(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_python(std::string_view program) { return program.starts_with("python") || program.starts_with("pypy"); }

}  // namespace

std::string find_program(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) {
    if (is_runnable(name)) return name;
    throw InvalidArgument(
        {.where = kWhere, .expected = "a program that can be run", .got = name + " (" + reason_not_to_run(name) + ")"});
  }
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = (folder.empty() ? "." : folder) + "/" + name;
    if (is_runnable(file)) return file;
  }
  const bool is_here = is_runnable("./" + name);
  throw InvalidArgument({.where = kWhere,
                         .expected = "a program along PATH",
                         .got = "'" + name + "', which is not there",
                         .fix = is_here ? "Write ./" + name + " for the one in this folder." : ""});
}

std::optional<std::string> known_launcher(const std::vector<std::string>& argv) {
  static constexpr std::array programs = {"torchrun", "accelerate", "mpirun", "mpiexec", "orterun", "srun"};
  static constexpr std::array modules = {"torch.distributed.run", "torch.distributed.launch",
                                         "accelerate.commands.launch", "accelerate.commands.accelerate_cli"};
  if (argv.empty()) return std::nullopt;
  const auto program = std::filesystem::path(argv.front()).filename().string();
  if (has(programs, program)) return program;
  if (!is_python(program)) return std::nullopt;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    if (argv[i] == "-m") {
      const bool is_launcher = i + 1 < argv.size() && has(modules, argv[i + 1]);
      return is_launcher ? std::optional("python -m " + argv[i + 1]) : std::nullopt;
    }
    if (argv[i].starts_with("-")) continue;
    const auto script = std::filesystem::path(argv[i]).filename().string();
    return has(programs, script) ? std::optional(script) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace lockstep::sim
