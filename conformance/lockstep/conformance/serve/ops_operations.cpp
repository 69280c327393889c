#include <algorithm>
#include <array>
#include <functional>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/comm/operations.h"
#include "lockstep/conformance/serve/operations.h"
#include "lockstep/state/rank_context.h"
#include "lockstep/value/json.h"

namespace lockstep::conformance {
namespace {

enum class Via { utility, accelerator };

Via via_from(Arguments& arguments) {
  const auto word = arguments.word("via", "utility");
  if (word == "utility") return Via::utility;
  if (word == "accelerator") return Via::accelerator;
  arguments.refuse("via", "utility or accelerator");
}

/// An operation by either door, its own arguments bound.
struct Doors {
  std::function<Value(Value&, const comm::ProcessGroup&)> utility;
  std::function<Value(Value&, const Accelerator&)> accelerator;  // empty: the Accelerator does not have it
};

/// Reads what all operations take, then runs the one asked for in a world whose debug mode is as the case wants it.
Json run(Arguments& arguments, const Doors& doors, bool always_debug = false) {
  auto input = arguments.value("input");
  const auto via = via_from(arguments);
  const bool debug = arguments.flag("debug", false) || always_debug;
  if (via == Via::accelerator && !doors.accelerator) arguments.refuse("via", "utility");
  arguments.finish();

  const state::PartialState state({.cpu = true});
  auto& group = state.rank().partial->group;
  if (debug) group = group.with_debug(true);
  const auto value = via == Via::utility ? doors.utility(input, state.world_group())
                                         : doors.accelerator(input, Accelerator({.cpu = true}));
  return {{"value", value::to_json(value)}, {"input_after", value::to_json(input)}};
}

Doors gather_doors(Arguments& /*arguments*/) {
  return {.utility = [](Value& input, const auto& group) { return comm::gather(input, group); },
          .accelerator = [](Value& input, const auto& accelerator) { return accelerator.gather(input); }};
}

Doors gather_object_doors(Arguments& /*arguments*/) {
  return {.utility = [](Value& input, const auto& group) { return comm::gather_object(input, group); },
          .accelerator = [](Value& input, const auto& accelerator) { return accelerator.gather_object(input); }};
}

// The two doors have defaults of their own, which is why a reduction that is absent stays absent. A scale has no effect
// on a CPU (OPS-009).
Doors reduce_doors(Arguments& arguments) {
  const auto word = arguments.optional_word("reduction");
  static_cast<void>(arguments.number("scale", 1.0));
  return {.utility =
              [word](Value& input, const auto& group) {
                return word ? comm::reduce(input, group, comm::reduction_from(*word)) : comm::reduce(input, group);
              },
          .accelerator =
              [word](Value& input, const auto& accelerator) {
                return word ? accelerator.reduce(input, comm::reduction_from(*word)) : accelerator.reduce(input);
              }};
}

Doors broadcast_doors(Arguments& arguments) {
  const auto from = arguments.small_integer("from_process", 0);
  return {.utility = [from](Value& input, const auto& group) { return comm::broadcast(input, group, from); },
          .accelerator = [from](Value& input, const auto& accelerator) { return accelerator.broadcast(input, from); }};
}

Doors broadcast_object_list_doors(Arguments& arguments) {
  const auto from = arguments.small_integer("from_process", 0);
  return {.utility = [from](Value& input, const auto& group) {
    auto list = input.items();
    comm::broadcast_object_list(list, group, from);
    return input = Value::list(list);
  }};
}

Doors pad_doors(Arguments& arguments) {
  const comm::PadOptions options{.dim = arguments.small_integer("dim", 0),
                                 .pad_index = arguments.number("pad_index", 0),
                                 .pad_first = arguments.flag("pad_first", false)};
  return {
      .utility = [options](Value& input,
                           const auto& group) { return comm::pad_across_processes(input, group, options); },
      .accelerator = [options](Value& input,
                               const auto& accelerator) { return accelerator.pad_across_processes(input, options); }};
}

struct NamedDoors {
  std::string_view name;
  Doors (*make)(Arguments& arguments);
};
constexpr std::array<NamedDoors, 6> kDoors = {{{"gather", gather_doors},
                                               {"gather_object", gather_object_doors},
                                               {"reduce", reduce_doors},
                                               {"broadcast", broadcast_doors},
                                               {"broadcast_object_list", broadcast_object_list_doors},
                                               {"pad_across_processes", pad_doors}}};

}  // namespace

Json ops_gather(Arguments& arguments, const Case& /*of*/) { return run(arguments, gather_doors(arguments)); }

Json ops_gather_object(Arguments& arguments, const Case& /*of*/) {
  return run(arguments, gather_object_doors(arguments));
}

Json ops_reduce(Arguments& arguments, const Case& /*of*/) { return run(arguments, reduce_doors(arguments)); }

Json ops_broadcast(Arguments& arguments, const Case& /*of*/) { return run(arguments, broadcast_doors(arguments)); }

Json ops_broadcast_object_list(Arguments& arguments, const Case& /*of*/) {
  return run(arguments, broadcast_object_list_doors(arguments));
}

Json ops_pad_across_processes(Arguments& arguments, const Case& /*of*/) { return run(arguments, pad_doors(arguments)); }

Json ops_verify(Arguments& arguments, const Case& /*of*/) {
  const auto* const doors = std::ranges::find(kDoors, arguments.word("call"), &NamedDoors::name);
  if (doors == kDoors.end()) arguments.refuse("call", "an operation without its ops.");
  return run(arguments, doors->make(arguments), /*always_debug=*/true);
}

}  // namespace lockstep::conformance
