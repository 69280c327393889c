#include <CLI/CLI.hpp>
#include <iostream>

#include "env_command.h"
#include "lockstep/base/error.h"
#include "lockstep/base/exit_code.h"

// The lockstep program: one subcommand per file. Results go to stdout, everything else to stderr.
int main(int argc, char** argv) {
  CLI::App app{"Lockstep: test and simulate distributed training on your own machine."};
  app.name("lockstep");
  app.require_subcommand(1);
  app.set_version_flag("--version", LOCKSTEP_VERSION);
  app.footer(
      "Exit codes: 0 well, 1 judged not well, 2 usage, 12 a rank failed; the whole table is in the README.\n"
      "Example: lockstep env");
  lockstep::cli::add_env_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? to_int(lockstep::ExitCode::ok) : to_int(lockstep::ExitCode::usage);
  } catch (const std::exception& error) {
    std::cerr << "lockstep: " << error.what() << '\n';
    return to_int(lockstep::ExitCode::usage);
  }
  return to_int(lockstep::ExitCode::ok);
}
