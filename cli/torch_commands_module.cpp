#include "conformance_command.h"
#include "env_command.h"
#include "lockstep/base/export.h"
#include "torch_commands.h"

extern "C" LOCKSTEP_API void lockstep_add_commands(CLI::App& app) {
  lockstep::cli::add_conformance_command(app);
  lockstep::cli::add_env_command(app);
}

static_assert(std::is_same_v<decltype(&lockstep_add_commands), lockstep::cli::AddCommands>);
