#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/value/value.h"

namespace lockstep::comm {

// Operations on nested values: the walk is value/'s, each leaf is a collective. Every rank of the group calls them with
// the same structure. A group that is none stands for a job of one process that is not distributed; there the input
// itself is returned, unless said otherwise. In debug mode (ProcessGroup::debug) gather, reduce and broadcast first
// compare shapes and dtypes over all ranks, and raise CollectiveMismatch on every rank when they differ.

/// Each tensor concatenated along dim 0 in rank order, on every rank; a 0-dim tensor counts as one row. Without
/// history.
/// @param value  tensors of equal shapes on all ranks; otherwise undefined outside debug mode (OPS-004)
/// @throws TypeError  for a leaf that is no tensor
/// @clause OPS-002..004
LOCKSTEP_API Value gather(const Value& value, const ProcessGroup& group);

/// The ranks' lists, concatenated in rank order, on every rank; lengths may differ.
/// @throws TypeError  for anything but a list or a tuple (OPS-006, accepted outcome)
/// @clause OPS-005, 006
LOCKSTEP_API Value gather_object(const Value& list, const ProcessGroup& group);

enum class Reduction { none, sum, mean, max };
/// @throws InvalidArgument  for another word (OPS-008, accepted outcome)
LOCKSTEP_API Reduction reduction_from(std::string_view word);

/// Each tensor reduced over the ranks, on every rank; the input is not changed, also without a group (a copy then).
/// @throws TypeError     for a leaf that is no tensor
/// @throws RuntimeError  for the mean of integers, before anything is sent
/// @clause OPS-007..009
LOCKSTEP_API Value reduce(const Value& value, const ProcessGroup& group, Reduction reduction = Reduction::mean);

/// Overwrites each tensor in place with that of `from_process` (global rank), and returns the value.
/// @clause OPS-010
LOCKSTEP_API Value broadcast(const Value& value, const ProcessGroup& group, int from_process = 0);

/// Replaces the list's elements by those of `from_process`, and returns the same list.
/// @throws InvalidArgument  on a rank whose list has another length
/// @clause OPS-011
LOCKSTEP_API std::vector<Value>& broadcast_object_list(std::vector<Value>& list, const ProcessGroup& group,
                                                       int from_process = 0);

/// The tensor that one rank has, on every rank. Who that is need not be known: shape and dtype travel first.
/// @param tensor  none on all ranks but one; of any shape, also without elements
/// @throws InvalidArgument  on every rank, naming those that passed one, unless exactly one did
/// @clause OPS-021
LOCKSTEP_API at::Tensor copy_tensor_to_devices(const std::optional<at::Tensor>& tensor, const ProcessGroup& group);

struct PadOptions {
  int dim = 0;           ///< negative: counted from the end
  double pad_index = 0;  ///< what is filled in
  bool pad_first = false;
};

/// Grows `dim` of each tensor to the largest over the ranks. The dtype stays the input's on every rank (OPS-014,
/// accepted outcome). A tensor without that dimension is returned as it is, and takes part in no collective; so is a
/// nested tensor, with a warning.
/// @throws TypeError           for a leaf that is no tensor, also without a group
/// @throws CollectiveMismatch  on every rank in debug mode, when ranks differ in their number of dimensions
/// @clause OPS-012..014, 041
LOCKSTEP_API Value pad_across_processes(const Value& value, const ProcessGroup& group, const PadOptions& options = {});

/// Compares structure, shapes, dtypes and kinds of device of `value` over all ranks.
/// @throws CollectiveMismatch  on every rank when they differ, naming the operation and each rank's shapes; also when a
///                             tensor is on a device that the group's backend does not serve
/// @throws TypeError           for a value without tensors
/// @clause OPS-040..042
LOCKSTEP_API void verify(const Value& value, const ProcessGroup& group, std::string_view operation);

}  // namespace lockstep::comm
