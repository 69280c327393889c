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

std::string file_name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// python, python3, python3.11, python3.13t, pypy3
bool is_python(const std::string& path) {
  const auto name = file_name_of(path);
  for (const std::string_view base : {"python", "pypy"}) {
    if (name.starts_with(base)) return name.find_first_not_of("0123456789.td", base.size()) == std::string::npos;
  }
  return false;
}

// An interpreter's command line in its parts.
struct PythonCommand {
  std::vector<std::string> options;  // the interpreter's own
  std::string module;                // of -m
  std::string script;                // without -m; empty as well for -c, a script that is piped in, and none
  std::vector<std::string> arguments;
};

// As Python reads it: letters may be joined (-um module), some take the rest of the word or the next one, and -m and -c
// are the last.
PythonCommand parse_python(const std::vector<std::string>& argv) {
  PythonCommand command;
  auto word = argv.begin() + 1;
  const auto take_next = [&] { return word == argv.end() ? std::string() : *word++; };
  while (word != argv.end() && word->starts_with('-') && *word != "-") {
    const auto option = *word++;
    command.options.push_back(option);
    if (option == "--check-hash-based-pycs") command.options.push_back(take_next());
    if (option.starts_with("--")) continue;
    const auto last = option.find_first_of("cmWX", 1);
    if (last == std::string::npos) continue;
    const auto rest = option.substr(last + 1);
    if (option[last] == 'W' || option[last] == 'X') {
      if (rest.empty()) command.options.push_back(take_next());
      continue;
    }
    if (option[last] == 'c') return command;
    command.options.back().resize(last);
    if (last == 1) command.options.pop_back();
    command.module = rest.empty() ? take_next() : rest;
    command.arguments.assign(word, argv.end());
    return command;
  }
  if (word == argv.end() || *word == "-") return command;
  command.script = *word++;
  command.arguments.assign(word, argv.end());
  return command;
}

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
  const bool is_interpreted = is_python(argv.front());
  const auto python = is_interpreted ? parse_python(argv) : PythonCommand();
  if (has(modules, python.module)) return "python -m " + python.module;
  const auto program = file_name_of(is_interpreted ? python.script : argv.front());
  return has(programs, program) ? std::optional(program) : std::nullopt;
}

bool looks_like_python(const std::vector<std::string>& argv) {
  return std::ranges::any_of(argv, [](const std::string& word) {
    const auto name = file_name_of(word);
    return is_python(name) || name.ends_with(".py") || name == "torchrun" || name == "accelerate";
  });
}

std::vector<std::string> under_pdb(const std::vector<std::string>& argv) {
  if (argv.empty() || !is_python(argv.front())) {
    throw InvalidArgument({.where = "--pdb",
                           .expected = "a Python interpreter as the program",
                           .got = argv.empty() ? "none" : argv.front(),
                           .fix = "Write: lockstep sim -n 2 --pdb 0 -- python train.py"});
  }
  const auto python = parse_python(argv);
  if (python.module.empty() && python.script.empty()) {
    throw InvalidArgument({.where = "--pdb", .expected = "a script or -m MODULE to run", .got = "neither"});
  }
  std::vector<std::string> debugged = {argv.front()};
  debugged.insert(debugged.end(), python.options.begin(), python.options.end());
  debugged.insert(debugged.end(), {"-m", "pdb"});
  if (!python.module.empty()) debugged.emplace_back("-m");
  debugged.push_back(python.module.empty() ? python.script : python.module);
  debugged.insert(debugged.end(), python.arguments.begin(), python.arguments.end());
  return debugged;
}

}  // namespace lockstep::sim
