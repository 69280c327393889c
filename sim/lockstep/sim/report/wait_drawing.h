#pragma once

#include "lockstep/sim/report/html_writer.h"
#include "lockstep/sim/report/verdict.h"

namespace lockstep::sim::report {

/// Draws who waits for whom as inline SVG: ranks on a circle, an arrow from each to those it waits for; the cycle, and
/// the rank where it began, stand out. Many ranks are drawn as groups that wait alike. Draws nothing, and returns
/// false, when nobody waits or when there is too much to see.
bool draw_waiting(const Verdict& verdict, HtmlWriter& to);

}  // namespace lockstep::sim::report
