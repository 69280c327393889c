#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "lockstep/sim/backend/process_ranks.h"
#include "lockstep/sim/check/checked_group.h"

namespace lockstep::sim {

/// Which tensors the ranks must agree on.
enum class Compared {
  callers,      ///< the caller's own, if he has said which
  handed_over,  ///< those that the backend gets, whatever the caller has
};

/// Posts one group's calls to the board, with what the adapter knows of them (caller.h).
class CallChecker {
 public:
  CallChecker(std::shared_ptr<WatchedRank> rank, std::shared_ptr<CheckedGroup> group);

  /// @return what a thread waits for that waits for the call
  /// @throws c10::DistBackendError  with the verdict's cause, when the call does not match or there is a verdict
  /// already
  layout::Wait post(Call& call, const std::vector<at::Tensor>& tensors, Compared compared) const;

  [[nodiscard]] const std::shared_ptr<CheckedRank>& rank() const noexcept { return rank_->rank; }

 private:
  std::shared_ptr<WatchedRank> rank_;
  std::shared_ptr<CheckedGroup> group_;
};

/// Of an all-to-all: elements that go to each rank, or come from it, by the rows of a tensor; without splits the rows
/// are shared out evenly.
std::vector<std::int64_t> elements_per_rank(const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                                            int size);
std::vector<std::int64_t> elements_of(const std::vector<at::Tensor>& tensors);

/// The same tensors without their values, and dense: how many values each rank holds of a sparse one is its own affair.
std::vector<at::Tensor> dense_shapes_of(const std::vector<at::Tensor>& tensors);

}  // namespace lockstep::sim
