#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "lockstep/base/export.h"
#include "lockstep/data/even_batches_scope.h"
#include "lockstep/parallel/ddp/join.h"

namespace lockstep {

/// How ranks that run out of inputs join the others (Accelerator::join_uneven_inputs).
struct JoinOptions {
  std::optional<bool> even_batches;  ///< of the loaders prepared so far; unset: as it is
  bool on_cpu = false;               ///< on the CPU too, where Accelerate only warns (ACC-045)
  /// Gradients are divided by the number of all ranks; false: of those that still had inputs for the step.
  bool divide_by_initial_world_size = true;
};

/// A training loop in which ranks take unequal numbers of batches, as Accelerator::join_uneven_inputs returns it. Its
/// end is that of this rank's inputs: it blocks until those of all ranks are at theirs, unless an exception ends it.
/// `finish()` is the same end, for those who would rather not have a destructor throw.
///
/// @clause ACC-044
class [[nodiscard, gnu::visibility("default")]] UnevenInputs {
 public:
  UnevenInputs() = default;  ///< changes nothing
  /// @param join    none: no rank runs out before the others
  /// @param at_end  called on all ranks when they are at the end, with the rank that was the last to have inputs
  UnevenInputs(data::EvenBatchesScope even_batches, std::unique_ptr<parallel::Join> join,
               std::function<void(int last_rank)> at_end);
  /// @throws RuntimeError, CollectiveMismatch, RankLost, Timeout  as finish, unless that was called
  ~UnevenInputs() noexcept(false);
  UnevenInputs(const UnevenInputs&) = delete;
  UnevenInputs& operator=(const UnevenInputs&) = delete;

  /// Ends it now; later calls do nothing.
  /// @throws RuntimeError, CollectiveMismatch, RankLost, Timeout  as parallel::Join::finish
  void finish();

 private:
  std::optional<data::EvenBatchesScope> even_batches_;
  std::unique_ptr<parallel::Join> join_;
  std::function<void(int)> at_end_;
  int num_uncaught_ = 0;  // exceptions in flight where the scope began
};

}  // namespace lockstep
