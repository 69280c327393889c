#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lockstep/base/export.h"
#include "lockstep/value/value.h"

/// Values as JSON, in the form of the conformance protocol, version 1 (section 2, Values):
///
/// | Value | JSON |
/// |---|---|
/// | none, bool, int, float, string, list | themselves; a float has a point or an exponent, an int has neither |
/// | float that is not finite | "NaN", "Infinity", "-Infinity" |
/// | tensor | {"t": "float32", "shape": [2, 1], "data": [1.0, 2.0]}; 0-dim: "data": [1.0] |
/// | tensor of more than 4096 elements | "b64" in place of "data": the elements' bytes, little-endian |
/// | tuple | {"tuple": [..]} |
/// | named tuple | {"named": "Point", "fields": {"x": .., "y": ..}} |
/// | bytes | {"b64": ".."} |
/// | dict with string keys | an object, its keys in order |
/// | any other dict | {"map": [[key, value], ..]} |
/// | the string "NaN" (or another word of the second row) | {"string": "NaN"} |
///
/// "Any other" are dicts with an integer key, with a key that marks one of these forms (t, tuple, named, b64, set,
/// error, map), and the dict {"string": NaN}. The last row is ours: the protocol writes that string and that float
/// alike, and its word is read as the float. Sign and payload of a NaN are lost. The order of an object's keys counts,
/// hence ordered_json.
namespace lockstep::value {

/// @throws TypeError        for an opaque object, naming its path
/// @throws NotSupported     for a dtype that the protocol has no name for
/// @throws InvalidArgument  for a string that is not UTF-8
LOCKSTEP_API nlohmann::ordered_json to_json(const Value& value);

/// Tensors are made on the CPU. A single number is taken as the data of a 0-dim tensor, an int where a float is due.
///
/// @throws InvalidArgument  for what is none of the forms above, naming the path; {"error": ..} is an answer, no value
/// @throws NotSupported     for {"set": ..}
LOCKSTEP_API Value from_json(const nlohmann::ordered_json& json);

}  // namespace lockstep::value
