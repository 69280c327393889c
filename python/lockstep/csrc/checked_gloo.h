#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "lockstep/sim/backend/checked_operations.h"
#include "lockstep/sim/backend/process_ranks.h"

namespace lockstep::python {

/// Gloo with the remark that its reduce deserves: it adds up in the tensors of all ranks, not in the root's alone.
/// All that live are known, without a weak pointer, which would keep their threads from ending.
class RemarkingGloo : public c10d::ProcessGroupGloo {
 public:
  template <typename... Arguments>
  explicit RemarkingGloo(Arguments&&... arguments) : ProcessGroupGloo(std::forward<Arguments>(arguments)...) {
    enlist();
  }
  ~RemarkingGloo() override;

  c10::intrusive_ptr<c10d::Work> reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;

  enum class Work { any, finished };
  /// Whether its threads are at a call, or still hold its tensors; or are about to give up those of a finished one.
  bool is_at(Work work);

 private:
  void enlist();
};

/// What stands in for ProcessGroupGloo: it is one, so that scripts and torch itself find what they ask for.
using CheckedGloo = sim::CheckedOperations<RemarkingGloo>;

/// How ranks of this process are watched; from the environment (lockstep/_environment.py).
struct Settings {
  std::string job = "by-hand";
  bool is_launched = false;
  bool is_paused = false;  ///< the user has this rank in his debugger, for all its life
  bool is_frozen = false;  ///< some rank is in a debugger: time-outs do not count
  sim::CheckOptions options;
};
void set_settings(Settings settings);
const Settings& settings();

/// One rank's end of a group.
struct GroupRequest {
  c10::intrusive_ptr<c10d::Store> store;
  int rank = 0;
  std::vector<int> ranks;  ///< the members' global ranks, in group order
  int world_size = 0;
  std::string name;
};

using GlooOptions = c10d::ProcessGroupGloo::Options;

/// Makes a Gloo group whose calls are checked. Blocks until the members have met.
/// @param make_options  called when the group is about to be made: with them Gloo starts a thread, which is known to
///                      serve the group only if it is started then
c10::intrusive_ptr<CheckedGloo> make_checked_gloo(const GroupRequest& request,
                                                  const std::function<c10::intrusive_ptr<GlooOptions>()>& make_options);

/// Threads of this process, by the kernel's ids, that make no call of their own.
void add_backend_threads(const std::vector<std::int32_t>& tids);

/// Called when the interpreter begins to end: keeps the ranks of this process, and the connections of their groups,
/// until it is known how it ends (end_ranks). Destroyed groups would look like lost ones to the peers.
void hold_ranks();
/// Waits until Gloo's threads hold no tensors; those of calls that are still under way for 50 ms. Giving up a tensor
/// may need the interpreter lock: once the interpreter ends nobody gets it, and torch aborts the process.
void wait_until_idle();
/// This process ends, with an exit code other than 0: its rank has failed; otherwise it has left.
void end_ranks(int exit_code);
/// This rank fails by itself, with an exception.
/// @param site           "file:line:function"
/// @param is_of_network  the exception is about a connection, so another rank may be behind it
void fail_rank(const std::string& kind, const std::string& message, const std::string& site, bool is_of_network);

}  // namespace lockstep::python
