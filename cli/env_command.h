#pragma once

namespace CLI {
class App;
}

namespace lockstep::cli {

/// `lockstep env`: versions, devices, compiler, backends and variables in force, for a bug report.
void add_env_command(CLI::App& app);

}  // namespace lockstep::cli
