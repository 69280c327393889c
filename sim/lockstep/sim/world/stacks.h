#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

#include "lockstep/sim/place/debug_file.h"

namespace lockstep::sim {

/// Reads the stacks of other processes. It keeps what it has read of their files, which are the same for all ranks.
class StackReader {
 public:
  /// The native stack of every thread, innermost frame first, one line each; with file and line, and functions that
  /// were inlined, where the program has line tables. The process stands still while it is looked at, and goes on
  /// afterwards.
  ///
  /// The caller must be allowed to trace it: an ancestor always is. If it cannot be, the text says why.
  std::string stacks_of(pid_t pid);

 private:
  struct ThreadWriter;

  const DebugFile* file_of(const std::string& path);

  std::map<std::string, std::unique_ptr<DebugFile>> files_;  // nullptr: cannot be read
};

}  // namespace lockstep::sim
