#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::launch {

/// A new child's first act: it leads a process group of its own, so that whatever it starts can be ended with it, and
/// dies with its launcher. Nothing but system calls: safe after vfork.
void lead_own_group(pid_t launcher);

/// As exec takes them: a null pointer comes last. They point into `strings`.
std::vector<char*> pointers_to(std::vector<std::string>& strings);

}  // namespace lockstep::launch
