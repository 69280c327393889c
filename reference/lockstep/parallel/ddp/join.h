#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/comm/process_group.h"

namespace lockstep::parallel {

class DistributedDataParallel;

/// What the ranks that still have inputs are about to do together; each of its collectives has to be met by the others.
struct Reduction {
  bool has_forward = true;     ///< false: of gradients whose forward lies behind (trigger_sync_in_backward)
  bool takes_buffers = false;  ///< buffers are broadcast before that forward
};

/// By how much the sum of the ranks' gradients is divided.
enum class JoinDivisor {
  world_size,         ///< all ranks: one without inputs counts as one whose gradient is zero
  ranks_with_inputs,  ///< only those that took part in this reduction
};

/// Lets ranks train on unequal numbers of inputs: one that has run out shadows the others' collectives until all have.
///
/// While it lives, the ranks tell each other before each reduction whether they have inputs for it (an all-gather of
/// one number). Those that have go on as always. One that has none says so in `finish`, learns there what the others
/// are about to do, and takes its part: the broadcast of buffers, which come from the first rank that has inputs, and
/// the reduction of each bucket, to which it gives zeros. Micro-batches whose gradients stay local (no_sync) need no
/// agreement, since they communicate nothing: ranks may take unequal numbers of them too.
///
/// In the end all ranks have the model of the first of those that ran out last. What an optimizer remembers (momentum)
/// stays each rank's own.
///
///     5 inputs of 1, two ranks:   rank 0  step step step finish        rank 1  step step finish
///                                                  third reduction: (g0 + 0) / 2
///
/// Within it each forward that synchronises is followed by its backward before the next one, of any model; and nothing
/// else that blocks on other ranks stands in the loop.
///
/// @clause ACC-044
/// @source PyTorch, torch.distributed.algorithms.join; DistributedDataParallel, its join hook
class LOCKSTEP_API Join {
 public:
  /// @param engines  all models trained in the loop, in the same order on all ranks
  /// @throws NotSupported  on all ranks alike, for a static graph, whose first reduction waits for the backward's end,
  ///                       and for a communication hook together with JoinDivisor::ranks_with_inputs: hooks divide by
  ///                       the world size
  /// @throws InvalidArgument  for a model that another Join has
  Join(std::vector<std::shared_ptr<DistributedDataParallel>> engines, comm::ProcessGroup group, JoinDivisor divisor);
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  /// This rank has no inputs left. Blocks until no rank has any. Without it nothing is shadowed: a rank that fails
  /// leaves the others to learn of that as always.
  /// @return the rank whose model all have now, the first of those that ran out last
  /// @throws RuntimeError        if the last forward that synchronises had no backward
  /// @throws CollectiveMismatch  on all ranks, if those with inputs are not about to do the same
  /// @throws RankLost, Timeout   when a rank failed in its loop
  int finish();

  // -- What engines call ---------------------------------------------------------------------------------------------
  /// This rank has inputs for a reduction. Blocks until every rank has said whether it has.
  /// @return ranks that have, ascending
  /// @throws RuntimeError, CollectiveMismatch  as finish
  const std::vector<int>& agree(const DistributedDataParallel& engine, const Reduction& reduction);
  /// The reduction agreed upon is done.
  void complete(const DistributedDataParallel& engine);
  /// Whether a reduction of this model was agreed upon, and is not done yet.
  [[nodiscard]] bool is_pending(const DistributedDataParallel& engine) const { return pending_ == &engine; }
  [[nodiscard]] JoinDivisor divisor() const { return divisor_; }

 private:
  std::int64_t exchange(std::int64_t mine);
  void require_nothing_pending() const;

  std::vector<std::shared_ptr<DistributedDataParallel>> engines_;
  comm::ProcessGroup group_;
  JoinDivisor divisor_;
  const DistributedDataParallel* pending_ = nullptr;
  std::vector<int> with_inputs_;  // ranks that took part in the last reduction; at first, all
};

}  // namespace lockstep::parallel
