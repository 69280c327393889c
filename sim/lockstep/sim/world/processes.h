#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::sim {

/// A process as /proc shows it.
struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  bool is_zombie = false;  ///< it has ended; its parent has not yet asked how
  std::string command;     ///< its arguments, or "(name)"
};

/// Orphans below this process become its children, and not init's: with it, every descendant can be found and ended.
class SubreaperScope {
 public:
  SubreaperScope();
  ~SubreaperScope();
  SubreaperScope(const SubreaperScope&) = delete;
  SubreaperScope& operator=(const SubreaperScope&) = delete;

 private:
  int before_ = 0;
};

std::vector<pid_t> children_of_this_process();
/// Those that live, parents before their children.
std::vector<ProcessInfo> descendants_of_this_process();

/// Kills and reaps all descendants of this process, a subreaper, but for the children in `spared` and what is below
/// them. False if some were still there after 5 s: the kernel holds them.
bool end_descendants(const std::vector<pid_t>& spared);

/// The process that traces `pid`, a debugger; 0 for none.
pid_t tracer_of(pid_t pid);

/// Whether the process has a handler of its own for the signal.
bool catches(pid_t pid, int signal);

/// Names in /dev/shm that bear the job's name. They are removed.
std::vector<std::string> remove_shared_memory_of(const std::string& job);

}  // namespace lockstep::sim
