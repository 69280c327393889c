#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::python {

/// Whose code it is; the greater, the better it stands for the user's place.
enum class Owner : std::uint8_t { framework, library, user };

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
void observe_threads(PyObject* active, PyObject* observer);

/// Where the calling thread is in the user's Python code; null on a thread that has no Python frame (one of
/// autograd's, say). Takes the interpreter lock for a moment; a place that was met before costs no string.
const Site* site_here();

/// Whose a code object (PyCodeObject) is. Needs the interpreter lock.
Owner owner_of_code(PyObject* code);

}  // namespace lockstep::python
