#pragma once

#include <string_view>

#include "lockstep/base/export.h"

namespace lockstep::accounting {

/// What the rank is doing, as far as the training loop has said.
enum class Phase { load, forward, backward, step, eval, save, other };
LOCKSTEP_API std::string_view to_word(Phase phase);

}  // namespace lockstep::accounting
