#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <vector>

#include "lockstep/sim/gallery/generated/execution.h"
#include "lockstep/sim/gallery/generated/program.h"

namespace lockstep::sim::generated {

/// Where calls meet and are compared: at a number of a group's collectives, or at one message.
struct Meeting {
  std::optional<int> group;  ///< none: a message
  std::size_t number = 0;

  auto operator<=>(const Meeting&) const = default;
};

/// Two calls that do not go together.
struct Clash {
  Meeting meeting;
  Posted one;
  Posted other;

  [[nodiscard]] bool has_happened(const Clock& clock) const {
    return generated::has_happened(clock, one.rank, one.event()) &&
           generated::has_happened(clock, other.rank, other.event());
  }
  /// When it happens at the earliest: what must lie before both calls.
  [[nodiscard]] Clock earliest() const {
    auto clock = one.clock;
    join(clock, other.clock);
    return clock;
  }
};

/// All pairs of calls in the run that a checker would refuse.
std::vector<Clash> clashes_of(const Program& program, const Execution& run);

}  // namespace lockstep::sim::generated
