#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/world.h"
#include "lockstep/conformance/serve/arguments.h"
#include "lockstep/conformance/serve/case_state.h"

namespace lockstep::conformance {

/// What an operation is told beside its arguments.
struct Case {
  const SessionRank& session;
  CaseStart start;  ///< for those that begin anew in their midst
  [[nodiscard]] World world() const { return session.world(); }
};

/// Carries out one operation of the protocol and gives its RESULT; throws what Lockstep throws, or Unsupported.
using Operation = Json (*)(Arguments& arguments, const Case& of);

struct NamedOperation {
  std::string_view name;
  Operation run;
};

/// All that this subject has, in the order of the protocol.
const std::vector<NamedOperation>& operations();
/// @throws Unsupported  for a name that is not among them
Operation operation_named(std::string_view name);
/// For the hello: the operations, and the features.
std::vector<std::string> capabilities();

// data
Json data_shard(Arguments& arguments, const Case& of);
Json data_iterable_shard(Arguments& arguments, const Case& of);
Json data_loader(Arguments& arguments, const Case& of);
Json data_dispatcher(Arguments& arguments, const Case& of);
Json data_skip_first_batches(Arguments& arguments, const Case& of);
Json data_resume(Arguments& arguments, const Case& of);
Json data_seedable_sampler(Arguments& arguments, const Case& of);
// state
Json state_process(Arguments& arguments, const Case& of);
Json state_split_between_processes(Arguments& arguments, const Case& of);
Json state_control(Arguments& arguments, const Case& of);
// ops
Json ops_gather(Arguments& arguments, const Case& of);
Json ops_gather_object(Arguments& arguments, const Case& of);
Json ops_gather_for_metrics(Arguments& arguments, const Case& of);
Json ops_reduce(Arguments& arguments, const Case& of);
Json ops_broadcast(Arguments& arguments, const Case& of);
Json ops_broadcast_object_list(Arguments& arguments, const Case& of);
Json ops_pad_across_processes(Arguments& arguments, const Case& of);
Json ops_verify(Arguments& arguments, const Case& of);
// programs
Json train_program(Arguments& arguments, const Case& of);
Json rng_program(Arguments& arguments, const Case& of);
// amp
Json amp_scaler(Arguments& arguments, const Case& of);
Json amp_autocast(Arguments& arguments, const Case& of);

}  // namespace lockstep::conformance
