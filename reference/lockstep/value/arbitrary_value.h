#pragma once

#include <rapidcheck.h>

#include "lockstep/value/value.h"

/// Generators of nested values for property tests. They shrink towards none and small containers, and like the words
/// and keys that an encoding could mistake for its own.
namespace lockstep::value {

/// Any kind but opaque; containers of at most three children, nested at most three deep. `dtypes` are those of tensors.
rc::Gen<Value> arbitrary_value(const std::vector<at::ScalarType>& dtypes);

/// Elements of all signs, zeros, and, for floats, NaN and infinities.
rc::Gen<at::Tensor> arbitrary_tensor(const std::vector<at::ScalarType>& dtypes);

/// Of the given shape.
at::Tensor seeded_tensor(at::IntArrayRef shape, at::ScalarType dtype, std::uint64_t seed);

}  // namespace lockstep::value
