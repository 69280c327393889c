#pragma once

#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/value/value.h"

namespace c10 {
struct IValue;
}

/// Values as LibTorch's IValues, which its serialisation, TorchScript and operators take and give.
///
/// Lists, dicts, tuples and leaves become the IValues of that kind. Lists and dicts are of element type Any, since a
/// Value's children differ in kind; so a pickle keeps order and keys of any kind. What IValues or their pickles cannot
/// tell apart becomes a tuple with a mark in front: (mark, "named", name, fields, items) because a pickled named tuple
/// comes back as a plain one, (mark, "bytes", text), and (mark, "tuple", items) for a tuple that itself begins with the
/// mark.
namespace lockstep::value {

/// @throws TypeError  for an opaque object, naming its path: such objects are never sent
LOCKSTEP_API c10::IValue to_ivalue(const Value& value);

/// Takes every IValue made of the kinds above, lists and dicts of narrower types and real named tuples included.
///
/// @throws TypeError  for any other (complex numbers, devices, modules, ...), and for dict keys of other kinds
LOCKSTEP_API Value from_ivalue(const c10::IValue& ivalue);

/// A Value as bytes, to send to other ranks: a pickle of its IValue that torch::pickle_load reads. Of a tensor, its
/// elements are written, without autograd history, and no more of its storage than it uses.
LOCKSTEP_API std::vector<char> to_bytes(const Value& value);

/// The reverse; tensors arrive on the CPU.
///
/// @throws InvalidArgument  for bytes that to_bytes did not make
LOCKSTEP_API Value from_bytes(const std::vector<char>& bytes);

}  // namespace lockstep::value
