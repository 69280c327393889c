#include "lockstep/sim/rank.h"

#include "lockstep/base/error.h"
#include "lockstep/state/partial_state.h"
#include "lockstep/state/rank_context.h"

namespace lockstep::sim {

Rank Rank::of_environment() {
  const state::PartialState state;
  if (!state.world_group()) {
    throw InvalidArgument({.where = "sim::main",
                           .expected = "a rank of several",
                           .got = "a process that is alone",
                           .fix = "Start it with `lockstep sim -n 2 -- PROGRAM`, or with torchrun's variables."});
  }
  return Rank(state.world_group());
}

comm::Store Rank::store() const { return state::RankContext::current().partial->store.value().with_prefix("user"); }

void name(const at::Tensor& tensor, const std::string& name) {
  // Memory is used again: the name goes with the tensor's.
  const c10::weak_intrusive_ptr<c10::StorageImpl> storage(tensor.storage().getWeakStorageImpl());
  state::RankContext::current().account()->labels().set(
      tensor.const_data_ptr(), {.names = {name}, .is_alive = [storage] { return !storage.expired(); }});
}

}  // namespace lockstep::sim
