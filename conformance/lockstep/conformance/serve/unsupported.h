#pragma once

#include <stdexcept>
#include <string>

namespace lockstep::conformance {

/// What this subject does not know or cannot do: the answer is `unsupported`, and names it. No error of the library
/// under test, hence no lockstep::Error.
class Unsupported : public std::runtime_error {
 public:
  explicit Unsupported(const std::string& what) : std::runtime_error(what) {}
};

}  // namespace lockstep::conformance
