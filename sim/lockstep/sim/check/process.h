#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

/// What /proc tells of processes and threads.
namespace lockstep::sim {

/// When the process was started, in ticks since boot; with the pid it names a process for good. None when there is
/// none, or only a zombie is left of it.
std::optional<std::uint64_t> start_time_of(pid_t pid);

/// Pid and start time as one number, which no other process has; never 0.
std::uint64_t id_of(pid_t pid);
/// Whether the process of an id is there.
bool is_alive(std::uint64_t id);

struct ThreadLook {
  pid_t tid = 0;
  char state = '?';             ///< R runs, S sleeps, D waits for a device ...
  std::uint64_t cpu_ticks = 0;  ///< used so far
};
/// All threads of this process.
std::vector<ThreadLook> threads_of_this_process();

bool is_thread_of_this_process(pid_t tid);

/// Whether the thread of this process waits for something that may come without any other thread of it: a time that was
/// set, a child process, a file, a signal. It does not while it waits in a futex without end, for another thread.
bool may_act_by_itself(pid_t tid);

/// Whether the thread belongs to LibTorch, which names its own.
bool is_thread_of_libtorch(pid_t tid);

/// Whether the thread of this process sleeps in a futex: waits for another thread, not for a time or a file.
bool sleeps_in_futex(pid_t tid);

}  // namespace lockstep::sim
