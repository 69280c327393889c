#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/store.h"

namespace lockstep::comm {

/// One call's work among thread ranks. Its future holds the output tensors, which is what c10d::Reducer reads.
class ThreadWork final : public c10d::Work {
 public:
  ThreadWork(std::vector<at::Tensor> outputs, std::chrono::milliseconds timeout);

  bool wait(std::chrono::milliseconds timeout) override;
  std::vector<at::Tensor> result() override { return outputs_; }
  int sourceRank() const override { return source_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  void complete(int source = -1);
  void fail(std::exception_ptr error);

 private:
  std::vector<at::Tensor> outputs_;
  std::chrono::milliseconds timeout_;
  int source_ = -1;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/// What one rank brings to a collective.
struct ThreadPart {
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> outputs;
  c10::intrusive_ptr<ThreadWork> work;
};

/// Where the ranks of one group meet in memory. Nobody waits to post: the last rank to arrive does the work for all, in
/// rank order, so that results are the same bits on every rank and in every run.
class ThreadGroup {
 public:
  using Compute = std::function<void(std::vector<ThreadPart>&)>;

  /// The group of all ranks that ask with the same store; rank 0 makes it, the others find it there.
  /// @param rank   within the group
  /// @param ranks  global ranks of the members, for messages
  static std::shared_ptr<ThreadGroup> join(const Store& store, int rank, const std::vector<int>& ranks);

  explicit ThreadGroup(std::vector<int> ranks) : ranks_(std::move(ranks)), size_(static_cast<int>(ranks_.size())) {}

  /// Brings `part` to the `sequence`-th collective. `signature` must be equal on all ranks: operation, root, dtypes,
  /// shapes.
  void meet(std::uint64_t sequence, int rank, const std::string& signature, ThreadPart part, const Compute& compute);

  void send(int from, int to, int tag, ThreadPart part);
  /// @param from  -1: from anyone
  void receive(int from, int to, int tag, ThreadPart part);

  /// Global ranks of those that have not come to the `sequence`-th collective; none when it is over.
  [[nodiscard]] std::vector<int> absent(std::uint64_t sequence) const;

  /// Fails everything that is posted and everything that will be.
  void abort(const std::string& reason);

 private:
  struct Meeting {
    std::vector<ThreadPart> parts;
    std::vector<std::string> signatures;
    int arrived = 0;
  };
  struct Posted {
    int from;
    int to;
    int tag;
    ThreadPart part;
  };
  bool refuse_after_abort(ThreadPart& part) const;
  void deliver(Posted& send, Posted& receive) const;
  static bool belong_together(const Posted& send, const Posted& receive);
  template <typename Belongs>
  std::optional<Posted> post_or_take(Posted& mine, std::deque<Posted>& own, std::deque<Posted>& others,
                                     const Belongs& belongs);

  const std::vector<int> ranks_;
  const int size_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Meeting> meetings_;
  std::deque<Posted> sends_;
  std::deque<Posted> receives_;
  std::exception_ptr aborted_;
};

}  // namespace lockstep::comm
