#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/exit_code.h"
#include "lockstep/base/words.h"
#include "sim_command.h"
#include "torch_commands.h"

namespace {

using lockstep::ExitCode;

// The parser itself would only say that a command is missing. The first word that is no option names the command.
void refuse_unknown_command(const CLI::App& app, const std::vector<std::string_view>& arguments) {
  const auto is_word = [](std::string_view argument) { return !argument.starts_with('-'); };
  const auto command = std::ranges::find_if(arguments, is_word);
  if (command == arguments.end()) return;
  std::vector<std::string> names;
  for (const auto* each : app.get_subcommands({})) names.push_back(each->get_name());
  if (std::ranges::find(names, *command) != names.end()) return;
  throw lockstep::InvalidArgument(fmt::format("{} is no command; did you mean {}? lockstep --help shows all of them.",
                                              *command, lockstep::nearest(*command, {names.begin(), names.end()})));
}

// @param exit_code  what the command came to
int run(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    const std::string_view first = argc > 1 ? argv[1] : "";
    if (first != "sim" && first != "--version") lockstep::cli::add_torch_commands(app);
    refuse_unknown_command(app, {argv + 1, argv + argc});
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? to_int(ExitCode::ok) : to_int(ExitCode::usage);
  } catch (const std::exception& error) {
    std::cerr << "lockstep: " << error.what() << '\n';
    return to_int(ExitCode::usage);
  }
  return exit_code;
}

}  // namespace

// The lockstep program: one subcommand per file. Results go to stdout, everything else to stderr.
int main(int argc, char** argv) {
  CLI::App app{"Lockstep: test and simulate distributed training on your own machine."};
  app.name("lockstep");
  app.require_subcommand(1);
  app.set_version_flag("--version", LOCKSTEP_VERSION);
  app.footer(
      "Exit codes: 0 well, 1 judged not well, 2 usage, 10 deadlock, 11 mismatch, 12 a rank failed; the whole table is "
      "in "
      "the README.\n"
      "Example: lockstep sim -n 4 -- ./train");
  int exit_code = to_int(ExitCode::ok);
  auto line = lockstep::cli::take_program(argc, argv);
  lockstep::cli::add_sim_command(app, std::move(line), exit_code);
  const int code = run(app, argc, argv, exit_code);
  std::cout.flush();
  if (std::cout || code != to_int(ExitCode::ok)) return code;
  std::cerr << "lockstep: cannot write to standard output: " << std::strerror(errno) << '\n';
  return to_int(ExitCode::usage);
}
