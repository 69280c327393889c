#include "lockstep/comm/accounted_backend.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "lockstep/base/duration.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/stand_ins.h"
#include "lockstep/comm/tracked_work.h"
#include "lockstep/comm/watcher.h"

namespace lockstep::comm {
namespace {

using Tensors = AccountedBackend::Tensors;

std::optional<ReduceOp> ours(const std::optional<c10d::ReduceOp>& op) {
  if (!op || op->op_ >= c10d::ReduceOp::PREMUL_SUM) return std::nullopt;
  return static_cast<ReduceOp>(op->op_);  // the same order as c10d's
}

std::vector<std::vector<std::int64_t>> shapes_of(const Tensors& tensors) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const auto& tensor : tensors) shapes.push_back(tensor.sizes().vec());
  return shapes;
}

}  // namespace

AccountedBackend::AccountedBackend(c10::intrusive_ptr<c10d::Backend> inner, Capabilities capabilities,
                                   std::shared_ptr<GroupContext> group)
    : ForwardingBackend(std::move(inner)), capabilities_(std::move(capabilities)), group_(std::move(group)) {}

std::uint64_t AccountedBackend::account_for(const Call& call) {
  const auto sequence = ++sequence_;
  accounting::TrafficCount count{.calls = 1};
  for (const auto& tensor : *call.inputs) {
    count.elements += tensor.numel();
    count.bytes += static_cast<std::int64_t>(tensor.nbytes());
  }
  const std::string dtype = call.inputs->empty() ? "" : c10::toString(call.inputs->front().scalar_type());
  auto& account = *group_->account;
  account.record({.op = call.operation, .group = group_->name, .dtype = dtype}, count);
  if (!account.has_observers()) return sequence;

  const auto label =
      call.inputs->empty() ? accounting::TensorLabel{} : account.labels().find(call.inputs->front().const_data_ptr());
  const auto op = ours(call.reduce_op);
  account.emit([&] {
    return accounting::Collective{.op = call.operation,
                                  .group = group_->name,
                                  .ranks = group_->ranks,
                                  .seq = sequence,
                                  .dtype = dtype,
                                  .elements = count.elements,
                                  .bytes = count.bytes,
                                  .shapes = shapes_of(*call.inputs),
                                  .reduce_op = op ? std::string(to_word(*op)) : "",
                                  .peer = call.peer ? group_->ranks[static_cast<std::size_t>(*call.peer)] : -1,
                                  .tag = call.tag,
                                  .asynchronous = call.asynchronous,
                                  .label = label.names};
  });
  if (label.divisor > 0) {
    account.emit([&] {
      return accounting::Reduced{
          .parameters = label.names, .group = group_->name, .divisor = label.divisor, .bytes = count.bytes};
    });
  }
  return sequence;
}

void AccountedBackend::refuse_what_cannot_be(const Call& call) const {
  if (call.peer && (*call.peer < 0 || *call.peer >= getSize())) {
    throw InvalidArgument({.where = call.operation,
                           .expected = fmt::format("a rank within group {}, from 0 to {}", group_->name, getSize() - 1),
                           .got = fmt::format("rank {}", *call.peer)});
  }
  capabilities_.require(call.operation);
  for (const auto& tensor : *call.inputs) {
    if (tensor.is_meta()) {
      throw InvalidArgument(
          {.where = call.operation, .expected = "a tensor with data", .got = "a tensor on the meta device"});
    }
    capabilities_.require(call.operation, tensor.scalar_type(), ours(call.reduce_op));
  }
}

template <typename Post>
AccountedBackend::WorkPtr AccountedBackend::run(const Call& call, Post&& post) {
  refuse_what_cannot_be(call);
  const auto sequence = account_for(call);
  const auto stand_ins = std::make_shared<StandIns>(call.reduce_op ? nullptr : &capabilities_);
  auto work = posted(*group_, fmt::format("{} #{} of group {}", call.operation, sequence, group_->name), [&] {
    const at::NoGradGuard no_grad;
    const WatchedCall watched(*group_, *call.inputs);
    return post(*stand_ins);
  });
  return c10::make_intrusive<TrackedWork>(std::move(work), stand_ins, group_, call.operation, sequence);
}

void AccountedBackend::require_some(const char* operation, std::size_t count) const {
  if (count > 0) return;
  throw InvalidArgument({.where = operation, .expected = "at least one tensor", .got = "an empty list"});
}

// Gloo sums over the list as well as over the ranks, and says nothing; others read the first tensor alone.
void AccountedBackend::require_one(const char* operation, std::size_t count) const {
  if (count == 1) return;
  throw InvalidArgument({.where = operation,
                         .expected = "one tensor",
                         .got = fmt::format("a list of {}", count),
                         .fix = "Call it once for each tensor, or use the coalesced form."});
}

// What the backend is asked for instead, with the same result.
template <typename ReductionOptions>
ReductionOptions AccountedBackend::asked(ReductionOptions options, const at::Tensor& tensor) const {
  if (const auto op = ours(options.reduceOp)) {
    options.reduceOp = static_cast<c10d::ReduceOp::RedOpType>(capabilities_.stand_in(tensor.scalar_type(), *op));
  }
  return options;
}

AccountedBackend::WorkPtr AccountedBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  require_one("allreduce", tensors.size());
  return run(
      {.operation = "allreduce", .inputs = &tensors, .reduce_op = options.reduceOp, .asynchronous = options.asyncOp},
      [&](StandIns& stand_ins) {
        auto given = stand_ins.targets(tensors);
        return inner().allreduce(given, asked(options, given.front()));
      });
}

AccountedBackend::WorkPtr AccountedBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  require_one("allreduce", tensors.size());
  const Tensors values{tensors.front()._values()};  // what travels, besides the indices
  return run({.operation = "allreduce", .inputs = &values, .reduce_op = options.reduceOp},
             [&](StandIns&) { return inner().allreduce_sparse(tensors, options); });
}

AccountedBackend::WorkPtr AccountedBackend::allreduce_coalesced(Tensors& tensors,
                                                                const c10d::AllreduceCoalescedOptions& options) {
  require_some("allreduce", tensors.size());
  return run(
      {.operation = "allreduce", .inputs = &tensors, .reduce_op = options.reduceOp, .asynchronous = options.asyncOp},
      [&](StandIns& stand_ins) {
        auto given = stand_ins.targets(tensors);
        return inner().allreduce_coalesced(given, asked(options, given.front()));
      });
}

AccountedBackend::WorkPtr AccountedBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  require_one("reduce", tensors.size());
  return run({.operation = "reduce",
              .inputs = &tensors,
              .reduce_op = options.reduceOp,
              .peer = static_cast<int>(options.rootRank),
              .asynchronous = options.asyncOp},
             [&](StandIns& stand_ins) {
               // Gloo uses the tensor as its scratch space on the way to the root: the others give it a copy (case M1).
               const bool is_root = options.rootRank == getRank();
               Tensors given =
                   is_root ? stand_ins.targets(tensors) : Tensors{tensors.front().clone(at::MemoryFormat::Contiguous)};
               return inner().reduce(given, asked(options, given.front()));
             });
}

AccountedBackend::WorkPtr AccountedBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  require_one("broadcast", tensors.size());
  return run({.operation = "broadcast",
              .inputs = &tensors,
              .peer = static_cast<int>(options.rootRank),
              .asynchronous = options.asyncOp},
             [&](StandIns& stand_ins) {
               auto given = stand_ins.targets(tensors);
               return inner().broadcast(given, options);
             });
}

AccountedBackend::WorkPtr AccountedBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                      const c10d::AllgatherOptions& options) {
  require_one("allgather", inputs.size());
  return run({.operation = "allgather", .inputs = &inputs, .asynchronous = options.asyncOp}, [&](StandIns& stand_ins) {
    auto from = stand_ins.sources(inputs);
    auto to = stand_ins.targets(outputs);
    return inner().allgather(to, from, options);
  });
}

AccountedBackend::WorkPtr AccountedBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                            const c10d::AllgatherOptions& options) {
  const Tensors inputs{input};
  return run({.operation = "allgather", .inputs = &inputs, .asynchronous = options.asyncOp}, [&](StandIns& stand_ins) {
    // Flat, since Gloo wants the output's rows to be shaped as the input.
    auto from = stand_ins.source(input).view(-1);
    auto to = stand_ins.target(output).view(-1);
    return inner()._allgather_base(to, from, options);
  });
}

AccountedBackend::WorkPtr AccountedBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                                const c10d::AllgatherOptions& options) {
  require_some("allgather", inputs.size());
  return run({.operation = "allgather", .inputs = &inputs, .asynchronous = options.asyncOp}, [&](StandIns& stand_ins) {
    auto from = stand_ins.sources(inputs);
    auto to = stand_ins.targets(outputs);
    return inner().allgather_coalesced(to, from, options);
  });
}

AccountedBackend::WorkPtr AccountedBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                            const c10d::AllgatherOptions& options) {
  require_some("allgather", inputs.size());
  return run({.operation = "allgather", .inputs = &inputs, .asynchronous = options.asyncOp}, [&](StandIns& stand_ins) {
    auto from = stand_ins.sources(inputs);
    auto to = stand_ins.targets(outputs);
    return inner().allgather_into_tensor_coalesced(to, from, options);
  });
}

AccountedBackend::WorkPtr AccountedBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                   const c10d::GatherOptions& options) {
  require_one("gather", inputs.size());
  return run({.operation = "gather",
              .inputs = &inputs,
              .peer = static_cast<int>(options.rootRank),
              .asynchronous = options.asyncOp},
             [&](StandIns& stand_ins) {
               auto from = stand_ins.sources(inputs);
               auto to = stand_ins.targets(outputs);
               return inner().gather(to, from, options);
             });
}

AccountedBackend::WorkPtr AccountedBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                    const c10d::ScatterOptions& options) {
  require_one("scatter", outputs.size());
  const bool is_root = options.rootRank == getRank();
  return run({.operation = "scatter",
              .inputs = is_root && !inputs.empty() ? &inputs.front() : &outputs,
              .peer = static_cast<int>(options.rootRank),
              .asynchronous = options.asyncOp},
             [&](StandIns& stand_ins) {
               auto from = stand_ins.sources(inputs);
               auto to = stand_ins.targets(outputs);
               return inner().scatter(to, from, options);
             });
}

AccountedBackend::WorkPtr AccountedBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                           const c10d::ReduceScatterOptions& options) {
  require_one("reduce_scatter", outputs.size());
  require_one("reduce_scatter", inputs.size());
  return run({.operation = "reduce_scatter",
              .inputs = &inputs.front(),
              .reduce_op = options.reduceOp,
              .asynchronous = options.asyncOp},
             [&](StandIns& stand_ins) {
               auto from = stand_ins.sources(inputs);
               auto to = stand_ins.targets(outputs);
               return inner().reduce_scatter(to, from, asked(options, to.front()));
             });
}

AccountedBackend::WorkPtr AccountedBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                                 const c10d::ReduceScatterOptions& options) {
  const Tensors inputs{input};
  return run({.operation = "reduce_scatter",
              .inputs = &inputs,
              .reduce_op = options.reduceOp,
              .asynchronous = options.asyncOp},
             [&](StandIns& stand_ins) {
               auto from = stand_ins.source(input).view(-1);
               auto to = stand_ins.target(output).view(-1);
               return inner()._reduce_scatter_base(to, from, asked(options, to));
             });
}

AccountedBackend::WorkPtr AccountedBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                            const c10d::ReduceScatterOptions& options) {
  require_some("reduce_scatter", inputs.size());
  return run({.operation = "reduce_scatter",
              .inputs = &inputs,
              .reduce_op = options.reduceOp,
              .asynchronous = options.asyncOp},
             [&](StandIns& stand_ins) {
               auto from = stand_ins.sources(inputs);
               auto to = stand_ins.targets(outputs);
               return inner().reduce_scatter_tensor_coalesced(to, from, asked(options, from.front()));
             });
}

AccountedBackend::WorkPtr AccountedBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                          std::vector<std::int64_t>& output_splits,
                                                          std::vector<std::int64_t>& input_splits,
                                                          const c10d::AllToAllOptions& options) {
  // Here, since Gloo finds out on a thread of its own, after it has sent.
  posted(*group_, "alltoall", [&] {
    c10d::checkSplitSizes(input_splits, input, getSize());
    c10d::checkSplitSizes(output_splits, output, getSize());
  });
  const Tensors inputs{input};
  return run({.operation = "alltoall", .inputs = &inputs, .asynchronous = options.asyncOp}, [&](StandIns& stand_ins) {
    auto from = stand_ins.source(input);
    auto to = stand_ins.target(output);
    return inner().alltoall_base(to, from, output_splits, input_splits, options);
  });
}

AccountedBackend::WorkPtr AccountedBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                                     const c10d::AllToAllOptions& options) {
  require_some("alltoall", inputs.size());
  return run({.operation = "alltoall", .inputs = &inputs, .asynchronous = options.asyncOp}, [&](StandIns& stand_ins) {
    auto from = stand_ins.sources(inputs);
    auto to = stand_ins.targets(outputs);
    return inner().alltoall(to, from, options);
  });
}

AccountedBackend::WorkPtr AccountedBackend::send(Tensors& tensors, int to, int tag) {
  require_one("send", tensors.size());
  capabilities_.require_tag(tag);
  return run({.operation = "send", .inputs = &tensors, .peer = to, .tag = tag}, [&](StandIns& stand_ins) {
    auto given = stand_ins.sources(tensors);
    return inner().send(given, to, tag);
  });
}

AccountedBackend::WorkPtr AccountedBackend::recv(Tensors& tensors, int from, int tag) {
  require_one("recv", tensors.size());
  capabilities_.require_tag(tag);
  return run({.operation = "recv", .inputs = &tensors, .peer = from, .tag = tag}, [&](StandIns& stand_ins) {
    auto given = stand_ins.targets(tensors);
    return inner().recv(given, from, tag);
  });
}

AccountedBackend::WorkPtr AccountedBackend::recvAnysource(Tensors& tensors, int tag) {
  require_one("recv", tensors.size());
  capabilities_.require_tag(tag);
  return run({.operation = "recv", .inputs = &tensors, .tag = tag}, [&](StandIns& stand_ins) {
    auto given = stand_ins.targets(tensors);
    return inner().recvAnysource(given, tag);
  });
}

AccountedBackend::WorkPtr AccountedBackend::barrier(const c10d::BarrierOptions& options) {
  const Tensors nothing;
  return run({.operation = "barrier", .inputs = &nothing, .asynchronous = options.asyncOp},
             [&](StandIns&) { return inner().barrier(options); });
}

void AccountedBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  const Tensors nothing;
  const Call call{.operation = "barrier", .inputs = &nothing, .asynchronous = false};
  refuse_what_cannot_be(call);
  const auto sequence = account_for(call);
  const auto operation = fmt::format("barrier #{} of group {}", sequence, group_->name);
  posted(*group_, operation, [&] {
    try {
      const WatchedCall watched(*group_, nothing);
      inner().monitoredBarrier(options, wait_all_ranks);
    } catch (const std::exception& error) {  // Gloo's own list of those who did not come
      if (std::string_view(error.what()).find("does not support") != std::string_view::npos) throw;
      throw_verdict();
      throw Timeout({.where = operation,
                     .expected = fmt::format("all ranks within {} s", seconds_of(options.timeout)),
                     .got = brief(error)});
    }
  });
}

}  // namespace lockstep::comm
