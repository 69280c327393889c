#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::python {

/// A place in a Python program; made once for each, and kept.
struct Site {
  std::string text;  ///< "file:line:function"
  std::uint64_t hash = 0;
};

/// Folders whose code is not the user's own. Called once, before the first call.
/// @param libraries  of installed packages and the standard library: passed over, unless nothing else is on the stack
/// @param frameworks torch and Lockstep itself: always passed over
void set_library_folders(std::vector<std::string> libraries, std::vector<std::string> frameworks);

/// From now on `observer` is called, under the interpreter lock, by a thread that asks where it is when the number of
/// Python's threads has changed since the last time.
/// @param active    a dict of all threads (threading._active)
/// @param observer  a callable without arguments
void observe_threads(void* active, void* observer);

/// Where the calling thread is in the user's Python code; null on a thread that has no Python frame (one of
/// autograd's, say). Takes the interpreter lock for a moment; a place that was met before costs no string.
const Site* site_here();

/// The same of a code object and a line in it, as a traceback holds them. Needs the interpreter lock.
/// @param code  a PyCodeObject
/// @return how well it stands for the user's place: 0 not at all, 1 a library, 2 his own code
int rank_of_code(void* code);

}  // namespace lockstep::python
