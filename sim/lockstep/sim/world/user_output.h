#pragma once

#include <string_view>

namespace lockstep::sim {

/// Our stdout and stderr, for what ranks write. After a signal of CaughtSignals they are given up as soon as they take
/// nothing for a moment: a terminal that stands still, or a pager that does not read, must not keep us from ending.
class UserOutput {
 public:
  /// @param descriptor  STDOUT_FILENO or STDERR_FILENO
  void write(int descriptor, std::string_view text);

 private:
  bool write_without_waiting(int descriptor, std::string_view text);

  bool is_given_up_ = false;
};

}  // namespace lockstep::sim
