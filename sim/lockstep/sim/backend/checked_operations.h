#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/sim/backend/call_checker.h"
#include "lockstep/sim/backend/checked_work.h"

namespace lockstep::sim {

/// A backend whose every call is compared with those of the peers before `Base` makes it, and which lets it be known
/// for what each thread waits. `Base` moves the data itself (Gloo, under Python) or hands on to one that does
/// (comm::ForwardingBackend).
///
/// Nothing is sent, no tensor is touched, and no call waits that would not wait without it: the same bits come out.
template <typename Base>
class CheckedOperations final : public Base {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  template <typename... Arguments>
  explicit CheckedOperations(CallChecker checker, Arguments&&... arguments)
      : Base(std::forward<Arguments>(arguments)...), checker_(std::move(checker)) {}

  /// What ends all waits of the base when there is a verdict. Called from another thread, and perhaps once more after
  /// this backend is gone.
  void set_abort(std::function<void()> abort) { abort_.emplace(*checker_.rank(), std::move(abort)); }

  bool supportsSplitting() const override { return false; }  // the parts would go unchecked

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return run({.operation = Operation::allreduce, .reduce_op = number_of(options.reduceOp)}, tensors,
               [&] { return Base::allreduce(tensors, options); });
  }
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return run(
        {.operation = Operation::allreduce, .form = Form::sparse, .reduce_op = number_of(options.reduceOp)},
        dense_shapes_of(tensors), [&] { return Base::allreduce_sparse(tensors, options); }, Compared::handed_over);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    return run({.operation = Operation::allreduce, .form = Form::coalesced, .reduce_op = number_of(options.reduceOp)},
               tensors, [&] { return Base::allreduce_coalesced(tensors, options); });
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return run({.operation = Operation::reduce,
                .reduce_op = number_of(options.reduceOp),
                .peer = static_cast<int>(options.rootRank)},
               tensors, [&] { return Base::reduce(tensors, options); });
  }
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return run({.operation = Operation::broadcast, .peer = static_cast<int>(options.rootRank)}, tensors,
               [&] { return Base::broadcast(tensors, options); });
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override {
    return run({.operation = Operation::allgather}, inputs, [&] { return Base::allgather(outputs, inputs, options); });
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override {
    return run({.operation = Operation::allgather, .form = Form::tensor}, {input},
               [&] { return Base::_allgather_base(output, input, options); });
  }
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override {
    return run({.operation = Operation::allgather, .form = Form::coalesced}, inputs,
               [&] { return Base::allgather_coalesced(outputs, inputs, options); });
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override {
    return run({.operation = Operation::allgather, .form = Form::coalesced}, inputs,
               [&] { return Base::allgather_into_tensor_coalesced(outputs, inputs, options); });
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    return run({.operation = Operation::gather, .peer = static_cast<int>(options.rootRank)}, inputs,
               [&] { return Base::gather(outputs, inputs, options); });
  }
  // What all ranks have is the part that each gets; the root's list of parts is its own.
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override {
    return run(
        {.operation = Operation::scatter, .peer = static_cast<int>(options.rootRank)}, outputs,
        [&] { return Base::scatter(outputs, inputs, options); }, Compared::handed_over);
  }
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    return run({.operation = Operation::reduce_scatter, .reduce_op = number_of(options.reduceOp)},
               inputs.empty() ? Tensors{} : inputs.front(),
               [&] { return Base::reduce_scatter(outputs, inputs, options); });
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    return run({.operation = Operation::reduce_scatter, .form = Form::tensor, .reduce_op = number_of(options.reduceOp)},
               {input}, [&] { return Base::_reduce_scatter_base(output, input, options); });
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return run(
        {.operation = Operation::reduce_scatter, .form = Form::coalesced, .reduce_op = number_of(options.reduceOp)},
        inputs, [&] { return Base::reduce_scatter_tensor_coalesced(outputs, inputs, options); });
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override {
    const auto sends = elements_per_rank(input, input_splits, Base::getSize());
    const auto receives = elements_per_rank(output, output_splits, Base::getSize());
    return run({.operation = Operation::alltoall, .form = Form::tensor, .sends = sends, .receives = receives}, {input},
               [&] { return Base::alltoall_base(output, input, output_splits, input_splits, options); });
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override {
    const auto sends = elements_of(inputs);
    const auto receives = elements_of(outputs);
    return run({.operation = Operation::alltoall, .sends = sends, .receives = receives}, inputs,
               [&] { return Base::alltoall(outputs, inputs, options); });
  }
  WorkPtr send(Tensors& tensors, int to, int tag) override {
    return run({.operation = Operation::send, .peer = to, .tag = tag}, tensors,
               [&] { return Base::send(tensors, to, tag); });
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    return run({.operation = Operation::recv, .peer = from, .tag = tag}, tensors,
               [&] { return Base::recv(tensors, from, tag); });
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return run({.operation = Operation::recv, .tag = tag}, tensors, [&] { return Base::recvAnysource(tensors, tag); });
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    return run({.operation = Operation::barrier}, {}, [&] { return Base::barrier(options); });
  }
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override {
    Call call{.operation = Operation::barrier, .form = Form::tensor};
    const auto wait = checker_.post(call, {}, Compared::callers);
    waiting(checker_.rank(), wait, [&] { Base::monitoredBarrier(options, wait_all_ranks); });
  }

 private:
  static std::uint8_t number_of(const c10d::ReduceOp& op) { return static_cast<std::uint8_t>(op.op_); }

  /// Posts the call, makes it on the base, and wraps its work.
  template <typename Make>
  WorkPtr run(Call call, const Tensors& tensors, Make&& make, Compared compared = Compared::callers) {
    const auto wait = checker_.post(call, tensors, compared);
    return c10::make_intrusive<CheckedWork>(make(), checker_.rank(), wait);
  }

  CallChecker checker_;
  std::optional<AbortScope> abort_;  // last: it uses the checker's rank
};

}  // namespace lockstep::sim
