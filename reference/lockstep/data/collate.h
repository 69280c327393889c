#pragma once

#include <functional>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/value/value.h"

namespace lockstep::data {

/// Makes one batch of the items of a batch, in their order. With workers it runs on their threads, several at once.
using Collate = std::function<Value(const std::vector<Value>& items)>;

/// What a loader does unless told otherwise: the items' structure around batches of their leaves. Tensors are stacked
/// along a new first dim, ints become int64 [batch], floats float64 [batch], bools bool [batch]; strings and bytes
/// become a list. Container kinds, names and the key order of the first item stay (PyTorch turns a tuple into a list).
///
/// Items (tensor [28, 28], 7) in a batch of 64 give (tensor [64, 28, 28], tensor<int64> [64]).
///
/// @throws RuntimeError     if tensors do not stack; the message has the path and the two shapes
/// @throws TypeError        if a leaf is none or opaque, or leaves of different kinds meet
/// @throws KeyError, InvalidArgument  if items differ in keys or sizes
/// @throws OutOfRange       for a batch without items
/// @source PyTorch, torch.utils.data.default_collate
LOCKSTEP_API Value default_collate(const std::vector<Value>& items);

}  // namespace lockstep::data
