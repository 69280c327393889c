#pragma once

namespace CLI {
class App;
}

namespace lockstep::cli {

/// Adds the commands that need LibTorch, which stand in a library of their own: loading LibTorch takes a third of a
/// second, and a simulated run is to begin at once.
/// @throws Missing  when the library beside the program cannot be loaded
void add_torch_commands(CLI::App& app);

/// What the library gives: adds its commands to the app.
using AddCommands = void (*)(CLI::App& app);
inline constexpr auto kTorchCommandsLibrary = "liblockstep_commands.so";
inline constexpr auto kAddCommandsName = "lockstep_add_commands";

}  // namespace lockstep::cli
