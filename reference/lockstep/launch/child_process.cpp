#include "lockstep/launch/child_process.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace lockstep::launch {

void lead_own_group(pid_t launcher) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(128 + SIGKILL);  // it died before the line above
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (auto& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace lockstep::launch
