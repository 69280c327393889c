#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/process_group.h"
#include "lockstep/comm/store.h"
#include "lockstep/comm/work.h"
#include "lockstep/sim/gallery/generated/program.h"

namespace lockstep::sim::generated {

/// A call with all that the library's function takes, so that making it is that one call and nothing else.
///
/// The tensors live as long as this does, and are made for this call alone.
struct PreparedCall {
  Action action = Action::barrier;
  comm::Work* awaited = nullptr;  ///< of a wait

  comm::ProcessGroup group;
  at::Tensor tensor;              ///< this rank's, or its part
  at::Tensor whole;               ///< the parts of all ranks in one: all_gather, reduce_scatter, all_to_all
  at::Tensor result;              ///< of an all_to_all
  std::vector<at::Tensor> parts;  ///< on the root of gather and scatter
  comm::Member peer;
  comm::AllReduceOptions reduction;
  comm::ReduceScatterOptions scattered;
  comm::ReduceOptions rooted;
  comm::RootOptions root;
  comm::AllToAllOptions splits;
  comm::PointToPointOptions tagged;

  std::optional<comm::Store> store;
  std::string key;
  std::string value;
  std::vector<std::string> keys;
  std::chrono::milliseconds timeout{};
  comm::Store::Interrupt interrupt;

  std::optional<comm::Work> work;  ///< what the call started

  void keep(comm::Work started);
};

/// Makes the call at this line: in a function of its own, call_at_017 for line 17, which calls the library directly.
///
/// A report shows the innermost function of the user's that a call comes from. There is one for every line, and not one
/// for all, so that lines can be told apart; they are functions with numbers in their names, and not instances of a
/// template, since reports leave out template arguments. They must be in the program, or in a library that does not
/// count as Lockstep's own (place/own_modules.h).
void make_call_at(int line, PreparedCall& call);

}  // namespace lockstep::sim::generated
