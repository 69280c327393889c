#pragma once

#include <iosfwd>
#include <string>

namespace lockstep::conformance {

/// Speaks protocol 1 as the rank that this process's environment names: the hello, once all ranks are there, then an
/// answer to each request, one line each, until the input ends. Everything else that is printed goes to stderr.
///
/// Each case finds everything as in a new process, but for the process group. A rank that fails answers its error and
/// waits for the next request; it tells its peers nothing.
///
/// @param version  for the hello
/// @throws RuntimeError  when the ranks do not meet, or nobody reads the answers
void serve(std::istream& requests, const std::string& version);

}  // namespace lockstep::conformance
