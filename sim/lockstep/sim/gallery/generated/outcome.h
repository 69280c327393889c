#pragma once

#include <compare>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lockstep/sim/gallery/generated/program.h"

namespace lockstep::sim::generated {

enum class Verdict { completes, mismatch, deadlock, rank_failed };
std::string_view to_word(Verdict verdict);

/// What a checker says of a run.
struct Outcome {
  Verdict verdict = Verdict::completes;
  std::optional<int> rank;  ///< where it began; none where nothing tells, as between two ranks
  std::optional<int> line;  ///< of that rank's call: the mismatched one, the one it waits for, or its last one

  auto operator<=>(const Outcome&) const = default;
};
/// "mismatch, began at rank 2, line 17"
std::string to_text(const Outcome& outcome);

/// What a checker may say of the program: one outcome, or several where the ranks' speed decides.
///
/// It follows from the program and the checker's rules alone. A mismatch is told when the second of two calls that do
/// not go together is made; the odd rank is where it began, if most of the members agree against it. A deadlock is
/// told when ranks wait for themselves or for one that is gone; it began at the one that is gone, else at the one for
/// which all others wait while it waits for something else. A program that can only complete has no other outcome.
std::set<Outcome> expected_outcomes(const Program& program);

}  // namespace lockstep::sim::generated
