#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>

#include "lockstep/base/export.h"

namespace lockstep::value {

/// PyTorch's name of an element type: "float32", "bfloat16", "float8_e4m3fn", "int64", "bool".
///
/// @throws NotSupported  for element types that no clause mentions (quantised and sub-byte ones)
LOCKSTEP_API std::string_view dtype_name(at::ScalarType dtype);

/// The reverse.
///
/// @throws InvalidArgument  for any other word; the message lists the names
LOCKSTEP_API at::ScalarType dtype_from_name(std::string_view name);

}  // namespace lockstep::value
