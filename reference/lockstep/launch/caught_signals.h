#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace lockstep::launch {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT are noted and do not end this process, so that a launcher can
/// end its ranks and tidy up first. Signals that somebody else has decided about, by a handler or by ignoring them, are
/// left to that decision.
///
/// A process has one disposition per signal: of several that live at the same time, the first does the catching.
class CaughtSignals {
 public:
  enum class Afterwards {
    forget,  ///< what came has been dealt with
    raise,   ///< the destructor lets the first that came do its work
  };

  /// @param tell  a socket into which each signal's number is written as one byte, as it comes; -1 for none
  explicit CaughtSignals(Afterwards afterwards, int tell = -1);
  ~CaughtSignals();
  CaughtSignals(const CaughtSignals&) = delete;
  CaughtSignals& operator=(const CaughtSignals&) = delete;

  /// The first that came; 0 while none has.
  [[nodiscard]] static int first() noexcept;
  /// In a forked child, which shall end at these signals as any process does.
  static void restore_in_child() noexcept;

 private:
  Afterwards afterwards_;
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace lockstep::launch
