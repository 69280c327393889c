#pragma once

#include <string_view>

#include "lockstep/base/export.h"

namespace lockstep::comm {

/// How a reduction combines the ranks' elements. `avg` is the sum divided by the group's size.
enum class ReduceOp { sum, avg, product, min, max, band, bor, bxor };

/// "sum", "avg", ...
LOCKSTEP_API std::string_view to_word(ReduceOp op);

}  // namespace lockstep::comm
