#pragma once

#include <string>

#include "lockstep/sim/report/verdict.h"

namespace lockstep::sim::report {

/// The report as one page that needs nothing else: no script, no file beside it, no network. It says what to_text()
/// says, and draws who waits for whom. Light or dark as the reader's system is.
std::string to_html(const Verdict& verdict);

}  // namespace lockstep::sim::report
