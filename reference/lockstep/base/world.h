#pragma once

#include <string>

#include "lockstep/base/export.h"

namespace lockstep {

/// One member's place in a group of `size` ranks.
struct World {
  int rank = 0;
  int size = 1;

  [[nodiscard]] bool is_first() const noexcept { return rank == 0; }
  [[nodiscard]] bool is_last() const noexcept { return rank == size - 1; }
  bool operator==(const World&) const = default;
};

/// @throws InvalidArgument  unless size >= 1 and 0 <= rank < size; `where` says who asked
LOCKSTEP_API World checked(World world, const std::string& where);

/// "rank 2 of 4"
LOCKSTEP_API std::string to_text(World world);

}  // namespace lockstep
