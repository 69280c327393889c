#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/export.h"

// Words that a user typed, compared with those that exist.
namespace lockstep {

/// Its ASCII letters in lower case, whatever the locale.
LOCKSTEP_API std::string lower(std::string_view word);

/// The one of `known`, which is not empty, that takes the fewest letters to add, drop or change; the first of several.
LOCKSTEP_API std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace lockstep
