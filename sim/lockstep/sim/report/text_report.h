#pragma once

#include <string>

#include "lockstep/sim/report/verdict.h"

namespace lockstep::sim::report {

struct TextOptions {
  bool colour = false;  ///< for a terminal that shows ANSI colours
};

/// The report for a terminal: the cause on the first line, then where the ranks stand, how their calls differ (of a
/// mismatch), who waits for whom, why ranks failed, notes, a hint, how to run it again, and the command line of a run
/// that did not end well. Ends with a newline.
std::string to_text(const Verdict& verdict, const TextOptions& options = {});

}  // namespace lockstep::sim::report
