#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "lockstep/base/export.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/comm/store.h"

namespace lockstep::sim {

/// One rank of a simulated world, as the function that runs on it sees it. Everything else of Lockstep (Accelerator,
/// PartialState, ...) works there as in any rank.
class LOCKSTEP_API Rank {
 public:
  /// The rank of this process, as its environment says; makes the world if there is none yet.
  static Rank of_environment();

  [[nodiscard]] int rank() const { return group_.rank(); }
  [[nodiscard]] int world_size() const { return group_.size(); }
  /// All ranks.
  [[nodiscard]] const comm::ProcessGroup& world() const noexcept { return group_; }
  /// The key-value store at which the ranks met.
  [[nodiscard]] comm::Store store() const;

 private:
  explicit Rank(comm::ProcessGroup group) : group_(std::move(group)) {}

  comm::ProcessGroup group_;
};

/// Gives a tensor a name for reports, for as long as its memory lives: calls that swap two equally shaped tensors are
/// told apart by their names.
LOCKSTEP_API void name(const at::Tensor& tensor, const std::string& name);

}  // namespace lockstep::sim
