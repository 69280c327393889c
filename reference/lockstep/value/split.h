#pragma once

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/value/value.h"

namespace lockstep::value {

/// The part of `value` that falls to one rank of `world`, when work without a data loader is divided.
///
/// With q = floor(L / w) and e = L mod w for length L on w ranks, the first e ranks get q + 1 elements and the others
/// q, in order. `apply_padding` fills every rank to q + (e > 0) elements with the last element of the whole input. This
/// needs no collective, since every rank knows the longest share; nor does it move tensors.
///
/// On 3 ranks, [0 1 2 3 4 5 6] gives rank 1: [3 4], with padding [3 4 6].
///
/// - Lists and tensors (rows of dim 0) are split; tuples too, and stay tuples; a named tuple becomes a plain one.
/// - A dict has each value split with the bounds of its first value; nested dicts with those same bounds. The result is
///   a new dict. A dict as the first value counts as many elements as it has keys.
/// - Strings and bytes are passed whole.
/// - On a world of one the value is passed whole, whatever it is.
///
/// @throws InvalidArgument  if values of a dict have different lengths, or `world` is none
/// @throws OutOfRange       for an empty dict, or if there is no last element to pad with
/// @throws TypeError        for a value without length: none, a number, a 0-dim tensor, an opaque object
/// @clause STATE-135..140
/// @source Accelerate, PartialState.split_between_processes
LOCKSTEP_API Value split_between(const Value& value, World world, bool apply_padding = false);

}  // namespace lockstep::value
