#pragma once

#include <memory>

#include "lockstep/comm/forwarding_backend.h"
#include "lockstep/sim/backend/caller.h"
#include "lockstep/sim/check/checked_rank.h"

namespace lockstep::sim {

/// Ends this thread's call with the verdict, as c10d's error for a failed collective.
[[noreturn]] void throw_verdict(const VerdictReached& verdict);

/// Runs what may meet a verdict; one that it meets is thrown as that error.
template <typename Block>
auto with_verdict_as_error(Block&& block) {
  try {
    return block();
  } catch (const VerdictReached& verdict) {
    throw_verdict(verdict);
  }
}

/// Runs a call that blocks until the peers have done their part, and lets it be known that this thread waits. When it
/// fails, the judge gets a moment to find out why.
template <typename Block>
auto waiting(const std::shared_ptr<CheckedRank>& rank, const layout::Wait& wait, Block&& block) {
  Frames frames;
  const WaitScope scope(rank, wait, site_of_wait(frames));
  try {
    return block();
  } catch (const std::exception&) {
    if (wait.kind != layout::WaitKind::none) with_verdict_as_error([&] { rank->look_for_verdict(); });
    throw;
  }
}

/// The inner backend's work; whoever waits for it is seen to wait.
class CheckedWork final : public comm::ForwardingWork {
 public:
  CheckedWork(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<CheckedRank> rank, layout::Wait wait)
      : ForwardingWork(std::move(inner)), rank_(std::move(rank)), wait_(wait) {}

  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  /// Runs a wait so that a verdict ends it: closed connections do for most, but not for one for whichever rank sends
  /// first.
  template <typename Block>
  auto abortable(Block&& block);

  std::shared_ptr<CheckedRank> rank_;
  layout::Wait wait_;
};

}  // namespace lockstep::sim
