#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/sim/gallery/generated/dice.h"
#include "lockstep/sim/gallery/generated/program.h"

namespace lockstep::sim::generated {

/// What may be wrong with one rank's program.
enum class FaultKind : std::uint8_t {
  drop,       ///< it does not make the call
  duplicate,  ///< it makes the call twice
  swap,       ///< it makes the next call before this one
  action,     ///< it makes another collective, or receives where it should send
  reduction,
  dtype,
  shape,
  root,
  group,
  tag,
  leave,  ///< it returns from its program before the call
  fail,   ///< it throws before the call
  loop,   ///< it makes a block of calls, this one first, once too often or not at all
};
std::string_view to_word(FaultKind kind);
const std::vector<FaultKind>& all_fault_kinds();

/// One fault, at one place.
struct Fault {
  FaultKind kind = FaultKind::drop;
  int rank = 0;
  int position = 0;  ///< among the rank's calls
  /// What stands there instead: the number of the Action, Reduction, Dtype or group, the root's world rank, the tag;
  /// of a shape 0 for one row more and 1 for dims in another order; of a loop the length of the block, negative when
  /// it is left out.
  int value = 0;
};
/// "rank 2 leaves out its broadcast at line 17" and the like, with the kind's word.
std::string describe(const Fault& fault, const Program& healthy);

/// The values with which the kind of fault can be planted at a place of a healthy program; none: it cannot.
///
/// Every one of them leaves a program whose calls are all well-formed, so that only the other ranks' calls prove them
/// wrong. No rank leaves with asynchronous calls under way: what becomes of them is up to the network.
std::vector<int> values_for(FaultKind kind, const Program& healthy, int rank, int position);

Program with_fault(Program healthy, const Fault& fault);

/// A fault of a random kind at a random place.
Fault random_fault(const Program& healthy, Dice& dice);

}  // namespace lockstep::sim::generated
