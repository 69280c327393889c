#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/comm/capabilities.h"
#include "lockstep/comm/forwarding_backend.h"
#include "lockstep/comm/group_context.h"

namespace lockstep::comm {

/// Stands before every backend, whoever calls: our own ProcessGroup or c10d's Reducer. Each call is
/// - refused on all ranks alike, before anything is sent, when the backend cannot do it (Capabilities);
/// - counted, and shown to the event stream (accounting);
/// - passed on with tensors as the backend takes them (StandIns);
/// - answered with a TrackedWork, whose errors name ranks.
class AccountedBackend final : public ForwardingBackend {
 public:
  AccountedBackend(c10::intrusive_ptr<c10d::Backend> inner, Capabilities capabilities,
                   std::shared_ptr<GroupContext> group);

  [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }

  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;

 private:
  struct Call {
    const char* operation;
    const Tensors* inputs;
    std::optional<c10d::ReduceOp> reduce_op = {};
    std::optional<int> peer = {};  // group rank of the root or the partner
    int tag = 0;
    bool asynchronous = true;
  };
  // Refuses, counts, passes on by `post(stand_ins)`, and wraps what comes back.
  template <typename Post>
  WorkPtr run(const Call& call, Post&& post);
  template <typename ReductionOptions>
  ReductionOptions asked(ReductionOptions options, const at::Tensor& tensor) const;
  void require_some(const char* operation, std::size_t count) const;
  void require_one(const char* operation, std::size_t count) const;
  void refuse_what_cannot_be(const Call& call) const;
  std::uint64_t account_for(const Call& call);

  Capabilities capabilities_;
  std::shared_ptr<GroupContext> group_;
  std::atomic<std::uint64_t> sequence_{0};
};

}  // namespace lockstep::comm
