#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep::cli {

/// Takes the first "--" and what follows it, a program and its arguments, off this program's arguments: the parser
/// shall neither know its options nor change its words.
std::vector<std::string> take_program(int& argc, char** argv);

/// `lockstep sim`: runs a program's ranks, watches them, and says why they hang.
/// @param program    what take_program found
/// @param exit_code  gets the run's; has to live as long as the app
void add_sim_command(CLI::App& app, std::vector<std::string> program, int& exit_code);

}  // namespace lockstep::cli
