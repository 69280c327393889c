#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/value/value.h"

/// What can be done to a nested value on one rank alone. All of them return a new Value and keep the structure; leaves
/// that are no tensors stay, unless a function says otherwise.
namespace lockstep::value {

/// Rows [begin, end) of every tensor, by Python's rules: both are cut to the size, a negative one counts from the end.
///
/// @throws OutOfRange  at a 0-dim tensor
/// @clause OPS-018
/// @source Accelerate, slice_tensors
LOCKSTEP_API Value slice(const Value& value, std::int64_t begin, std::int64_t end);

/// Joins the tensors that stand at one place along `dim`. The first value gives the structure: entries that only later
/// ones have are ignored. A single value may have leaves that are no tensors; they stay.
///
/// @throws KeyError      if an entry of the first is missing in a later one (OutOfRange for an item)
/// @throws TypeError     at a leaf that is no tensor, if there are several values
/// @throws RuntimeError  if shapes do not fit together
/// @throws OutOfRange    if there are no values, or no such `dim`
/// @clause OPS-016
/// @source Accelerate, concatenate
LOCKSTEP_API Value concatenate(const std::vector<Value>& values, std::int64_t dim = 0);

/// Rows of the first leaf, depth first.
///
/// @throws InvalidArgument  if a container on the way to it is empty
/// @throws TypeError        if that leaf is no tensor
/// @throws OutOfRange       if it is a 0-dim tensor
/// @clause OPS-017
/// @source Accelerate, find_batch_size
LOCKSTEP_API std::int64_t find_batch_size(const Value& value);

/// The same, with none for an empty container or another leaf; a 0-dim tensor still throws OutOfRange.
/// @clause OPS-017
LOCKSTEP_API std::optional<std::int64_t> find_batch_size_or_none(const Value& value);

/// Where the first tensor is, in the order of the walk; none without tensors.
/// @clause OPS-020
LOCKSTEP_API std::optional<at::Device> find_device(const Value& value);

/// Tensors become nested lists of ints, floats or bools; a 0-dim tensor becomes one number.
///
/// @throws NotSupported  for complex tensors
/// @clause OPS-018
/// @source Accelerate, listify
LOCKSTEP_API Value listify(const Value& value);

struct SendOptions {
  bool non_blocking = false;            ///< from pinned memory only: do not wait for the copy
  std::vector<Value::Key> skip_keys{};  ///< entries of dicts, at any depth, that stay where they are
};

/// Moves every tensor to `device`.
///
/// @clause OPS-019
/// @source Accelerate, send_to_device
LOCKSTEP_API Value send_to_device(const Value& value, at::Device device, const SendOptions& options = {});

/// Tensors of dtype float16 and bfloat16 become float32, all others stay.
///
/// @clause OPS-022
/// @source Accelerate, convert_to_fp32
LOCKSTEP_API Value convert_to_fp32(const Value& value);

/// Appends copies of the last row of every tensor until a batch of `batch_size` rows is a multiple of `num_processes`.
/// This is the outcome that OPS-015 accepts; Accelerate's own formula appends another number of zero rows.
///
/// On 4 processes, rows [a b c] of batch size 3 become [a b c c].
///
/// @throws InvalidArgument  unless batch_size >= 0 and num_processes >= 1
/// @throws TypeError        at a leaf that is no tensor
/// @throws OutOfRange       if a tensor that needs rows has none along `dim`
/// @clause OPS-015
/// @source Accelerate, pad_input_tensors
LOCKSTEP_API Value pad_input_tensors(const Value& value, std::int64_t batch_size, std::int64_t num_processes,
                                     std::int64_t dim = 0);

/// Replaces every tensor by its description, the named tuple TensorInformation(shape: list of ints, dtype: name), which
/// can be sent to other ranks.
///
/// @clause OPS-020
/// @source Accelerate, get_data_structure
LOCKSTEP_API Value get_data_structure(const Value& value);

/// The reverse, up to the elements, which are uninitialised: what a rank needs to receive a broadcast.
///
/// @clause OPS-020
/// @source Accelerate, initialize_tensors
LOCKSTEP_API Value initialize_tensors(const Value& structure, at::Device device = at::kCPU);

}  // namespace lockstep::value
