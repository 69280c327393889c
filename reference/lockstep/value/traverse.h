#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/value/value.h"

/// The walk over nested values. Every operation on them is a leaf function given to one of these; container kinds,
/// field names and key order survive each of them (OPS-001). Children are visited in order, depth first.
///
/// Where a message has to say which leaf, it gives its *path*: `x[0].y` is the field or key y of the first item of what
/// stands under the key x. A path of the value itself is empty, and reads "the value".
namespace lockstep::value {

/// What a leaf function returns takes the leaf's place; at::Tensor, numbers and strings convert.
using LeafFunction = std::function<Value(const Value& leaf)>;
using TensorFunction = std::function<Value(const at::Tensor& tensor)>;

/// Replaces every leaf, tensor or not, by `fn(leaf)`.
LOCKSTEP_API Value map_leaves(const Value& value, const LeafFunction& fn);

/// Replaces every tensor by `fn(tensor)`; other leaves stay.
///
/// @clause OPS-001
/// @source Accelerate, recursively_apply
LOCKSTEP_API Value map_tensors(const Value& value, const TensorFunction& fn);

/// The same for operations that make sense on tensors alone.
///
/// @param operation  what was asked for, named by the message: "gather: expected a tensor at x[0], got string"
/// @throws TypeError  at the first leaf that is no tensor
/// @clause OPS-001, OPS-003
LOCKSTEP_API Value map_tensors_or_throw(const Value& value, const TensorFunction& fn, const std::string& operation);

LOCKSTEP_API void for_each_leaf(const Value& value,
                                const std::function<void(const std::string& path, const Value& leaf)>& fn);
LOCKSTEP_API void for_each_tensor(const Value& value, const std::function<void(const at::Tensor& tensor)>& fn);

/// All tensors, in the order of the walk.
LOCKSTEP_API std::vector<at::Tensor> tensors_of(const Value& value);
LOCKSTEP_API std::int64_t num_tensors(const Value& value);
/// Whether map_tensors_or_throw would throw. An empty container has no leaf at all.
LOCKSTEP_API bool has_non_tensor_leaf(const Value& value);

/// How alike the values of a zip have to be.
enum class Match {
  exact,  ///< same containers, names, sizes and keys; the order of keys may differ
  first,  ///< the first value gives the structure; what others have on top of it is ignored (OPS-016)
};

/// Walks several values at once and replaces the leaves that stand at one place by `fn(leaves, path)`; the result has
/// the structure of the first value. Under Match::first, a leaf of the first may meet containers of the others.
///
/// @throws OutOfRange       if there are no values, or one has too few items
/// @throws KeyError         if a key or field of the first is missing in another
/// @throws TypeError        if containers of different kinds, or a container and a leaf, meet
/// @throws InvalidArgument  under Match::exact, if sizes differ or a named tuple has another name; all name the path
using ZipFunction = std::function<Value(const std::vector<Value>& leaves, const std::string& path)>;
LOCKSTEP_API Value zip_leaves(const std::vector<Value>& values, const ZipFunction& fn, Match match = Match::exact);

/// zip_leaves for tensors, with Match::exact; where the first value has another leaf, that leaf stays.
///
/// @throws TypeError  if a tensor meets another leaf
LOCKSTEP_API Value map_tensors_zip(const std::vector<Value>& values,
                                   const std::function<Value(const std::vector<at::Tensor>& tensors)>& fn);

/// One level of the walk: the same container around `fn(child, position)`. For operations that treat some containers
/// in a way of their own. @throws TypeError  if `value` is no container
LOCKSTEP_API Value map_children(const Value& value,
                                const std::function<Value(const Value& child, std::size_t position)>& fn);

/// The path of a child of what stands at `path`: "x" and position 0 of a list give "x[0]".
LOCKSTEP_API std::string child_path(const std::string& path, const Value& container, std::size_t position);
/// The path for a message: itself, or "the value" if empty.
LOCKSTEP_API std::string path_text(const std::string& path);

}  // namespace lockstep::value
