#include "lockstep/accounting/phase.h"

#include <array>

namespace lockstep::accounting {

std::string_view to_word(Phase phase) {
  constexpr std::array words = {"load", "forward", "backward", "step", "eval", "save", "other"};
  return words.at(static_cast<std::size_t>(phase));
}

}  // namespace lockstep::accounting
