// The in-process backend: ranks are threads of one process, and a collective is a meeting in memory. It is what tests
// use that need many ranks and no network, and 100 times faster than sockets there.
#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/backend_makers.h"
#include "lockstep/comm/thread_group.h"

namespace lockstep::comm {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Op = c10d::ReduceOp;

void combine(at::Tensor& sum, const at::Tensor& next, Op::RedOpType op) {
  switch (op) {
    case Op::SUM:
    case Op::AVG: sum.add_(next); return;
    case Op::PRODUCT: sum.mul_(next); return;
    case Op::MIN: at::minimum_out(sum, sum, next); return;
    case Op::MAX: at::maximum_out(sum, sum, next); return;
    case Op::BAND: sum.bitwise_and_(next); return;
    case Op::BOR: sum.bitwise_or_(next); return;
    case Op::BXOR: sum.bitwise_xor_(next); return;
    default: throw NotSupported({.where = "threads backend", .got = fmt::format("reduce op {}", static_cast<int>(op))});
  }
}

// In rank order, so that every rank and every run gets the same bits.
at::Tensor reduced(const std::vector<ThreadPart>& parts, std::size_t index, Op::RedOpType op) {
  auto sum = parts.front().inputs[index].clone();
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) combine(sum, part->inputs[index], op);
  if (op == Op::AVG) sum.div_(static_cast<double>(parts.size()));
  return sum;
}

// Elements in their order; the shapes may differ.
void copy_elements(const at::Tensor& to, const at::Tensor& from) { to.copy_(from.reshape(to.sizes())); }

std::string word(Op op) { return std::string(to_word(static_cast<ReduceOp>(op.op_))); }

std::string signature(std::string_view operation, const Tensors& tensors, std::string_view more = "") {
  std::string text(operation);
  for (const auto& tensor : tensors) {
    text += fmt::format(" {}[{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
  }
  return more.empty() ? text : text + " " + std::string(more);
}

void require(bool holds, const char* operation, const std::string& expected, const std::string& got) {
  if (!holds) throw InvalidArgument({.where = operation, .expected = expected, .got = got});
}

// copy_ would broadcast and convert; a collective does neither.
void require_like(const char* operation, const Tensors& tensors, const at::Tensor& model) {
  for (const auto& tensor : tensors) {
    require(tensor.numel() == model.numel() && tensor.scalar_type() == model.scalar_type(), operation,
            fmt::format("{} elements of {}", model.numel(), c10::toString(model.scalar_type())),
            fmt::format("{} elements of {}", tensor.numel(), c10::toString(tensor.scalar_type())));
  }
}

void require_contiguous(const char* operation, const at::Tensor& tensor) {
  require(tensor.is_contiguous(), operation, "a contiguous tensor", "a tensor with gaps or permuted dimensions");
}

class ThreadBackend final : public c10d::Backend {
 public:
  ThreadBackend(std::shared_ptr<ThreadGroup> group, World world, std::chrono::milliseconds timeout)
      : Backend(world.rank, world.size), group_(std::move(group)), timeout_(timeout) {}

  const std::string getBackendName() const override { return "threads"; }
  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void abort() override { group_->abort(fmt::format("rank {} of the group left it", getRank())); }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    const auto op = options.reduceOp.op_;
    return post({.signature = signature("allreduce", tensors, word(op)), .inputs = tensors, .outputs = tensors},
                [op](std::vector<ThreadPart>& parts) {
                  for (std::size_t i = 0; i < parts.front().inputs.size(); ++i) {
                    const auto sum = reduced(parts, i, op);
                    for (auto& part : parts) part.outputs[i].copy_(sum);
                  }
                });
  }

  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override {
    return allreduce(tensors, options);
  }

  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions&) override {
    return post({.signature = signature("sparse allreduce", tensors), .inputs = tensors, .outputs = tensors},
                [](std::vector<ThreadPart>& parts) {
                  const auto sum = reduced(parts, 0, Op::SUM).coalesce();
                  for (auto& part : parts) part.outputs.front().copy_(sum);
                });
  }

  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    const auto op = options.reduceOp.op_;
    const auto root = static_cast<std::size_t>(options.rootRank);
    return post({.signature = signature("reduce", tensors, fmt::format("{} to {}", word(op), root)),
                 .inputs = tensors,
                 .outputs = tensors},
                [op, root](std::vector<ThreadPart>& parts) {
                  for (std::size_t i = 0; i < parts.front().inputs.size(); ++i) {
                    parts[root].outputs[i].copy_(reduced(parts, i, op));
                  }
                });
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    const auto root = static_cast<std::size_t>(options.rootRank);
    return post({.signature = signature("broadcast", tensors, fmt::format("from {}", root)),
                 .inputs = tensors,
                 .outputs = tensors},
                [root](std::vector<ThreadPart>& parts) {
                  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
                    if (rank == root) continue;
                    for (std::size_t i = 0; i < parts[rank].outputs.size(); ++i) {
                      parts[rank].outputs[i].copy_(parts[root].inputs[i]);
                    }
                  }
                });
  }

  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override {
    require_like("allgather", outputs.front(), inputs.front());
    return gather_everywhere(inputs, outputs.front(), outputs.front());
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions&) override {
    return gather_everywhere({input}, pieces("allgather", output), {output});
  }
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override {
    Tensors flat;
    for (const auto& from_rank : outputs) {
      require(from_rank.size() == inputs.size(), "allgather", fmt::format("{} outputs for each rank", inputs.size()),
              std::to_string(from_rank.size()));
      for (std::size_t i = 0; i < inputs.size(); ++i) require_like("allgather", {from_rank[i]}, inputs[i]);
      flat.insert(flat.end(), from_rank.begin(), from_rank.end());
    }
    return gather_everywhere(inputs, flat, flat);
  }
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override {
    return gather_everywhere(inputs, pieces_by_rank("allgather", outputs), outputs);
  }

  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override {
    const auto root = static_cast<std::size_t>(options.rootRank);
    const auto mine = outputs.empty() ? Tensors() : outputs.front();
    require_like("gather", mine, inputs.front());
    return post(
        {.signature = signature("gather", inputs, fmt::format("to {}", root)), .inputs = inputs, .outputs = mine},
        [root](std::vector<ThreadPart>& parts) {
          for (std::size_t from = 0; from < parts.size(); ++from) {
            copy_elements(parts[root].outputs[from], parts[from].inputs.front());
          }
        });
  }

  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override {
    const auto root = static_cast<std::size_t>(options.rootRank);
    const auto mine = inputs.empty() ? Tensors() : inputs.front();
    require_like("scatter", mine, outputs.front());
    return post(
        {.signature = signature("scatter", outputs, fmt::format("from {}", root)), .inputs = mine, .outputs = outputs},
        [root](std::vector<ThreadPart>& parts) {
          for (std::size_t to = 0; to < parts.size(); ++to) {
            copy_elements(parts[to].outputs.front(), parts[root].inputs[to]);
          }
        });
  }

  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    require_like("reduce_scatter", outputs, inputs.front().at(static_cast<std::size_t>(getRank())));
    return reduce_everywhere(inputs.front(), outputs, options.reduceOp.op_);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    return reduce_everywhere(pieces("reduce_scatter", input), {output}, options.reduceOp.op_);
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override {
    return reduce_everywhere(pieces_by_rank("reduce_scatter", inputs), outputs, options.reduceOp.op_);
  }

  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions&) override {
    return exchange(rows(input, input_splits), rows(output, output_splits), {output});
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions&) override {
    return exchange(inputs, outputs, outputs);
  }

  WorkPtr barrier(const c10d::BarrierOptions&) override {
    return post({.signature = "barrier"}, [](std::vector<ThreadPart>&) {});
  }

  void monitoredBarrier(const c10d::BarrierOptions& options, bool) override {
    const auto work = barrier(options);
    try {
      work->wait(options.timeout == c10d::kUnsetTimeout ? timeout_ : options.timeout);
    } catch (const c10::Error&) {
      throw std::runtime_error(
          fmt::format("Timed out waiting for ranks {}", fmt::join(group_->absent(sequence_), ", ")));
    }
  }

  WorkPtr send(Tensors& tensors, int to, int tag) override {
    require_contiguous("send", tensors.front());
    auto work = make_work({});
    group_->send(getRank(), to, tag, {.inputs = tensors, .work = work});
    return work;
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    require_contiguous("recv", tensors.front());
    auto work = make_work(tensors);
    group_->receive(from, getRank(), tag, {.outputs = tensors, .work = work});
    return work;
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override { return recv(tensors, -1, tag); }

 private:
  struct Call {
    std::string signature;
    Tensors inputs = {};
    Tensors outputs = {};
    Tensors result = {};  // what the work's future holds; empty: the outputs
  };

  c10::intrusive_ptr<ThreadWork> make_work(Tensors result) const {
    return c10::make_intrusive<ThreadWork>(std::move(result), timeout_);
  }

  WorkPtr post(Call call, const ThreadGroup::Compute& compute) {
    auto work = make_work(call.result.empty() ? call.outputs : std::move(call.result));
    group_->meet(++sequence_, getRank(), call.signature, {std::move(call.inputs), std::move(call.outputs), work},
                 compute);
    return work;
  }

  // `outputs` holds, rank after rank, a tensor for each of that rank's inputs.
  WorkPtr gather_everywhere(const Tensors& inputs, Tensors outputs, Tensors result) {
    return post({.signature = signature("allgather", inputs),
                 .inputs = inputs,
                 .outputs = std::move(outputs),
                 .result = std::move(result)},
                [](std::vector<ThreadPart>& parts) {
                  for (auto& part : parts) {
                    auto output = part.outputs.begin();
                    for (const auto& from : parts) {
                      for (const auto& input : from.inputs) copy_elements(*output++, input);
                    }
                  }
                });
  }

  // `inputs` holds, rank after rank, a tensor for each of that rank's outputs.
  WorkPtr reduce_everywhere(Tensors inputs, const Tensors& outputs, Op::RedOpType op) {
    return post(
        {.signature = signature("reduce_scatter", inputs, word(op)), .inputs = std::move(inputs), .outputs = outputs},
        [op](std::vector<ThreadPart>& parts) {
          std::size_t input = 0;
          for (auto& part : parts) {
            for (const auto& output : part.outputs) copy_elements(output, reduced(parts, input++, op));
          }
        });
  }

  // Lengths differ between ranks by right, so they are no part of the signature.
  WorkPtr exchange(Tensors inputs, Tensors outputs, Tensors result) {
    return post({.signature = fmt::format("alltoall {}", c10::toString(inputs.front().scalar_type())),
                 .inputs = std::move(inputs),
                 .outputs = std::move(outputs),
                 .result = std::move(result)},
                [](std::vector<ThreadPart>& parts) {
                  for (std::size_t to = 0; to < parts.size(); ++to) {
                    for (std::size_t from = 0; from < parts.size(); ++from) {
                      const auto& input = parts[from].inputs[to];
                      const auto& output = parts[to].outputs[from];
                      if (input.numel() != output.numel()) {
                        throw CollectiveMismatch(
                            {.where = "alltoall",
                             .expected = fmt::format("the {} elements that member {} sends", input.numel(), from),
                             .got = fmt::format("room for {} at member {}", output.numel(), to)});
                      }
                      copy_elements(output, input);
                    }
                  }
                });
  }

  // One flat piece per rank.
  Tensors pieces(const char* operation, const at::Tensor& whole) const {
    require_contiguous(operation, whole);
    const auto flat = whole.view(-1);
    return flat.split_with_sizes(
        std::vector<std::int64_t>(static_cast<std::size_t>(getSize()), flat.numel() / getSize()));
  }
  Tensors pieces_by_rank(const char* operation, const Tensors& wholes) const {
    Tensors by_rank;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(getSize()); ++rank) {
      for (const auto& whole : wholes) by_rank.push_back(pieces(operation, whole)[rank]);
    }
    return by_rank;
  }

  Tensors rows(const at::Tensor& tensor, std::vector<std::int64_t> counts) const {
    c10d::checkSplitSizes(counts, tensor, getSize());
    if (counts.empty()) counts.assign(static_cast<std::size_t>(getSize()), tensor.size(0) / getSize());
    return tensor.split_with_sizes(counts);
  }

  std::shared_ptr<ThreadGroup> group_;
  std::chrono::milliseconds timeout_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

MadeBackend make_threads(const BackendRequest& request) {
  auto group = ThreadGroup::join(request.store, request.world.rank, request.ranks);
  return {.backend = c10::make_intrusive<ThreadBackend>(std::move(group), request.world, request.timeout),
          .capabilities = Capabilities::threads()};
}

}  // namespace lockstep::comm
