#pragma once

#include <cstdint>
#include <set>

#include "lockstep/sim/gallery/generated/faults.h"
#include "lockstep/sim/gallery/generated/outcome.h"
#include "lockstep/sim/gallery/generated/program.h"

namespace lockstep::sim::generated {

/// A program with one fault, and what a checker must say of it.
struct Case {
  std::uint64_t seed = 0;
  Program healthy;
  Fault fault;
  Program program;  ///< with the fault
  std::set<Outcome> expected;

  /// The program completes all the same: there is nothing to find.
  [[nodiscard]] bool is_harmless() const { return expected.contains({.verdict = Verdict::completes}); }
};

Case make_case(std::uint64_t seed);

}  // namespace lockstep::sim::generated
