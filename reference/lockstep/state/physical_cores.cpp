#include "lockstep/state/physical_cores.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

namespace lockstep::state {
namespace {

// The threads of the core to which this CPU belongs, "0,64" for example: the same text for each of them. Where the
// kernel does not tell, every CPU is a core of its own.
std::string core_of(int cpu) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  std::string siblings;
  return std::getline(file, siblings) ? siblings : std::to_string(cpu);
}

}  // namespace

int num_physical_cores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &usable)) cores.insert(core_of(cpu));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

}  // namespace lockstep::state
