#pragma once

namespace lockstep {

/// What `lockstep` and the examples return; the same table stands in the README. When several hold, the first cause
/// decides.
enum class ExitCode : int {
  ok = 0,            ///< done, and what was judged is well
  not_well = 1,      ///< what was judged is not well
  usage = 2,         ///< usage or bad input: nothing was run
  undecided = 3,     ///< statistics do not decide, or a control failed
  protocol = 4,      ///< a subject broke the protocol, or a waiver is wrong or expired
  deadlock = 10,     ///< sim: deadlock proved
  mismatch = 11,     ///< sim: collectives do not match
  rank_failed = 12,  ///< a rank failed by itself; its own code is in the report
  divergence = 13,   ///< sim: divergence, or a ledger's rule broken
  straggler = 14,    ///< sim: a straggler, or the run, passed the limit that the user set
  left_behind = 15,  ///< sim: something was left behind
  unchecked = 17,    ///< sim: nothing was checked
};

constexpr int to_int(ExitCode code) noexcept { return static_cast<int>(code); }

/// The code of a program that a signal ended.
constexpr int exit_code_of_signal(int signal) noexcept { return 128 + signal; }

}  // namespace lockstep
