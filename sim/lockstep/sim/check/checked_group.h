#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/sim/check/checked_rank.h"

namespace lockstep::sim {

/// This rank's end of a checked group.
class CheckedGroup {
 public:
  CheckedGroup(std::shared_ptr<CheckedRank> rank, std::optional<int> index, std::string name, std::vector<int> ranks);
  ~CheckedGroup();
  CheckedGroup(const CheckedGroup&) = delete;
  CheckedGroup& operator=(const CheckedGroup&) = delete;

  /// Writes the call onto the board and compares it with those of the members that are there already. Does not wait,
  /// but for the last few of a mismatch's ranks, to see which of them is the odd one.
  /// @return what a thread waits for that waits for this call
  /// @throws VerdictReached  when it does not match, or there is a verdict already
  layout::Wait post(const Call& call, const Context& context);

  /// What a thread waits for while the group comes together.
  [[nodiscard]] layout::Wait rendezvous() const;

  [[nodiscard]] const std::shared_ptr<CheckedRank>& rank() const noexcept { return rank_; }
  [[nodiscard]] int index() const noexcept { return index_.value_or(-1); }
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }

 private:
  layout::Wait post_collective(layout::CallRecord& record);
  layout::Wait post_to_channel(const Call& call, layout::CallRecord& record);
  void compare(const Call& call, std::uint64_t sequence, const layout::CallRecord& record);
  /// @param members  group ranks whose calls agree with this one, and come from another place
  void note_sites(const layout::CallRecord& mine, const std::vector<int>& members);

  std::shared_ptr<CheckedRank> rank_;
  std::optional<int> index_;  // none: the board's table is full, and this group goes unchecked
  std::string name_;
  std::vector<int> ranks_;
  int group_rank_;
  std::uint64_t sequence_ = 0;
};

}  // namespace lockstep::sim
