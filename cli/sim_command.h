#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep::cli {

/// This program's arguments, as they were typed.
struct CommandLine {
  std::vector<std::string> all;
  std::vector<std::string> program;  ///< what follows the first "--": a program and its arguments
};

/// Takes the first "--" and what follows it off this program's arguments: the parser shall neither know the options of
/// that program nor change its words.
CommandLine take_program(int& argc, char** argv);

/// `lockstep sim`: runs a program's ranks, watches them, and says why they hang.
/// @param line       what take_program found
/// @param exit_code  gets the run's; has to live as long as the app
void add_sim_command(CLI::App& app, CommandLine line, int& exit_code);

}  // namespace lockstep::cli
