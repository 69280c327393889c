#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>

#include "lockstep/sim/check/checked_rank.h"
#include "lockstep/sim/place/capture.h"

namespace lockstep::sim {

/// Ends this thread's call with the verdict, as c10d's error for a failed collective.
[[noreturn]] void throw_verdict(const VerdictReached& verdict);

/// Runs a call that blocks until the peers have done their part, and lets it be known that this thread waits. When it
/// fails, the judge gets a moment to find out why.
template <typename Block>
auto waiting(const std::shared_ptr<CheckedRank>& rank, const layout::Wait& wait, Block&& block) {
  const auto frames = capture_frames();
  const WaitScope scope(rank, wait, {frames.addresses.data(), static_cast<std::size_t>(frames.count)});
  try {
    return block();
  } catch (const std::exception&) {
    try {
      if (wait.kind != layout::WaitKind::none) rank->look_for_verdict();
    } catch (const VerdictReached& verdict) {
      throw_verdict(verdict);
    }
    throw;
  }
}

/// The inner backend's work; whoever waits for it is seen to wait.
class CheckedWork final : public c10d::Work {
 public:
  CheckedWork(c10::intrusive_ptr<c10d::Work> inner, std::shared_ptr<CheckedRank> rank, layout::Wait wait)
      : inner_(std::move(inner)), rank_(std::move(rank)), wait_(wait) {}

  bool isCompleted() override { return inner_->isCompleted(); }
  bool isSuccess() const override { return inner_->isSuccess(); }
  std::exception_ptr exception() const override { return inner_->exception(); }
  int sourceRank() const override { return inner_->sourceRank(); }
  std::vector<at::Tensor> result() override { return inner_->result(); }
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void blockCurrentStream() override { inner_->blockCurrentStream(); }
  void abort() override { inner_->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override { return inner_->getFutureResult(); }
  float getDuration() const override { return inner_->getDuration(); }
  std::uint64_t getSequencenumber() const override { return inner_->getSequencenumber(); }

 private:
  c10::intrusive_ptr<c10d::Work> inner_;
  std::shared_ptr<CheckedRank> rank_;
  layout::Wait wait_;
};

}  // namespace lockstep::sim
