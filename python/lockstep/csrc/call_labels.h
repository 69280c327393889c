#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace c10d {
class Reducer;
}

namespace lockstep::python {

/// From now on the buckets of this reducer are known by the names of the parameters in them.
/// @param parameters  as the reducer got them
void name_buckets(const std::shared_ptr<c10d::Reducer>& reducer, const std::vector<at::Tensor>& parameters,
                  const std::vector<std::string>& names);

/// Of all reducers that know by now that a backward pass left gradients of theirs without an average: the names of the
/// parameters for which no gradient came. c10d says so only at the next forward, if there is one.
std::vector<std::string> parameters_without_gradient();

/// From now on calls with this tensor bear its name, for as long as its memory lives.
void name_tensor(const at::Tensor& tensor, const std::string& name);

/// The names of what travels in a call with these tensors, one per line; empty when nothing is known. Valid until the
/// thread asks again.
/// @param in_backward  the calling thread is inside a backward pass: only then a reducer's buckets are looked at, since
///                     then it is the reducer that calls
std::string_view label_of(const std::vector<at::Tensor>& tensors, bool in_backward);

}  // namespace lockstep::python
