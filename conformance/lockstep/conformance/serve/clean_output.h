#pragma once

#include <string_view>

namespace lockstep::conformance {

/// While it lives, stdout is this object's alone: what anybody else prints there goes to stderr.
class CleanOutput {
 public:
  /// @throws RuntimeError  if there is no stdout
  CleanOutput();
  ~CleanOutput();
  CleanOutput(const CleanOutput&) = delete;
  CleanOutput& operator=(const CleanOutput&) = delete;

  /// Writes the line and its end at once. @throws RuntimeError  when nobody reads
  void write_line(std::string_view line) const;

 private:
  int stdout_;
};

}  // namespace lockstep::conformance
