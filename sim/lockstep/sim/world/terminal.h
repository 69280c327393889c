#pragma once

#include <sys/types.h>

#include <optional>

namespace lockstep::sim {

/// The process group that reads what is typed; none if stdin is no terminal of ours.
std::optional<pid_t> group_at_terminal();

/// Lets that group of our session read from the terminal, and get its Ctrl-C. Nothing happens without a terminal.
void give_terminal_to(pid_t group);

}  // namespace lockstep::sim
