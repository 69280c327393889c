#include "lockstep/sim/world/terminal.h"

#include <signal.h>
#include <unistd.h>

namespace lockstep::sim {

std::optional<pid_t> group_at_terminal() {
  const pid_t group = tcgetpgrp(STDIN_FILENO);
  if (group < 0) return std::nullopt;
  return group;
}

void give_terminal_to(pid_t group) {
  if (isatty(STDIN_FILENO) == 0) return;
  // A process in the background that does this is stopped by SIGTTOU unless it is blocked.
  sigset_t background;
  sigset_t before;
  sigemptyset(&background);
  sigaddset(&background, SIGTTOU);
  sigprocmask(SIG_BLOCK, &background, &before);
  tcsetpgrp(STDIN_FILENO, group);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace lockstep::sim
