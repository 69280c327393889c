#include "lockstep/sim/backend/checked_backend.h"

#include "lockstep/sim/backend/checked_work.h"
#include "lockstep/sim/place/capture.h"

namespace lockstep::sim {

thread_local NextCall next_call;

namespace {

using Tensors = CheckedBackend::Tensors;

std::uint8_t dtype_of(const at::Tensor& tensor) { return static_cast<std::uint8_t>(tensor.scalar_type()); }
std::uint8_t number_of(const c10d::ReduceOp& op) { return static_cast<std::uint8_t>(op.op_); }
int root(std::int64_t rank) { return static_cast<int>(rank); }

void add_shapes(Shapes& shapes, const at::Tensor* tensors, std::size_t count, bool only_rows) {
  for (std::size_t i = 0; i < count; ++i) {
    auto sizes = tensors[i].sizes();
    if (only_rows && !sizes.empty()) sizes = sizes.slice(1);
    shapes.add(dtype_of(tensors[i]), {sizes.data(), sizes.size()});
  }
}

// Where the user's code makes the call. The cheap walk finds nothing below LibTorch's frames, which keep no frame
// pointers (a bucket of DDP): then the exact one is worth its time, which is little beside that of a bucket.
Frames frames_of_caller() {
  const auto frames = capture_frames();
  return frames.count > 0 && frames.is_exact ? frames : unwind_frames();
}

// Elements that go to each rank, from the rows of an all-to-all.
std::vector<std::int64_t> elements_per_rank(const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                                            int size) {
  const auto rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  const auto per_row = rows == 0 ? 0 : tensor.numel() / rows;
  std::vector<std::int64_t> elements(static_cast<std::size_t>(size), rows / size * per_row);
  for (std::size_t i = 0; i < splits.size() && i < elements.size(); ++i) elements[i] = splits[i] * per_row;
  return elements;
}

std::vector<std::int64_t> elements_of(const Tensors& tensors) {
  std::vector<std::int64_t> elements;
  for (const auto& tensor : tensors) elements.push_back(tensor.numel());
  return elements;
}

}  // namespace

CheckedBackend::CheckedBackend(std::shared_ptr<WatchedRank> rank, std::shared_ptr<CheckedGroup> group,
                               c10::intrusive_ptr<c10d::Backend> inner)
    : Backend(inner->getRank(), inner->getSize()),
      rank_(std::move(rank)),
      group_(std::move(group)),
      inner_(std::move(inner)),
      abort_(*rank_->rank, [inner = inner_] { inner->abort(); }) {}

layout::Wait CheckedBackend::post(Call& call, const Tensors& tensors) {
  if (rank_->rank->options().level == Level::off) return {};
  // The caller's own tensors, if it has said which: what is handed over may be flat, or bytes in a dtype's stead.
  Shapes shapes;
  const bool is_exchange = call.operation == Operation::alltoall;
  if (next_call.inputs != nullptr) {
    add_shapes(shapes, next_call.inputs, next_call.num_inputs, is_exchange);
  } else {
    add_shapes(shapes, tensors.data(), tensors.size(), is_exchange);
  }
  call.shapes = &shapes;
  const auto frames = frames_of_caller();
  auto context = next_call.context;
  if (rank_->rank->options().strict_places) context.place_hash = rank_->place_hash(frames);
  context.frames = {frames.addresses.data(), static_cast<std::size_t>(frames.count)};
  try {
    return group_->post(call, context);
  } catch (const VerdictReached& verdict) {
    throw_verdict(verdict);
  }
}

template <typename Make>
CheckedBackend::WorkPtr CheckedBackend::run(Call call, const Tensors& tensors, Make&& make) {
  const auto wait = post(call, tensors);
  return c10::make_intrusive<CheckedWork>(make(), rank_->rank, wait);
}

CheckedBackend::WorkPtr CheckedBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  return run(
      {.operation = Operation::allreduce, .reduce_op = number_of(options.reduceOp), .asynchronous = options.asyncOp},
      tensors, [&] { return inner_->allreduce(tensors, options); });
}

CheckedBackend::WorkPtr CheckedBackend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  // How many values each rank holds is its own affair.
  Tensors rows;
  for (const auto& tensor : tensors)
    rows.push_back(at::empty(tensor.sizes(), tensor.options().layout(at::kStrided).device(at::kMeta)));
  const auto given = next_call.inputs;
  next_call.inputs = nullptr;
  auto work = run({.operation = Operation::allreduce,
                   .form = Form::sparse,
                   .reduce_op = number_of(options.reduceOp),
                   .asynchronous = options.asyncOp},
                  rows, [&] { return inner_->allreduce_sparse(tensors, options); });
  next_call.inputs = given;
  return work;
}

CheckedBackend::WorkPtr CheckedBackend::allreduce_coalesced(Tensors& tensors,
                                                            const c10d::AllreduceCoalescedOptions& options) {
  return run({.operation = Operation::allreduce,
              .form = Form::coalesced,
              .reduce_op = number_of(options.reduceOp),
              .asynchronous = options.asyncOp},
             tensors, [&] { return inner_->allreduce_coalesced(tensors, options); });
}

CheckedBackend::WorkPtr CheckedBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  return run({.operation = Operation::reduce,
              .reduce_op = number_of(options.reduceOp),
              .peer = root(options.rootRank),
              .asynchronous = options.asyncOp},
             tensors, [&] { return inner_->reduce(tensors, options); });
}

CheckedBackend::WorkPtr CheckedBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  return run({.operation = Operation::broadcast, .peer = root(options.rootRank), .asynchronous = options.asyncOp},
             tensors, [&] { return inner_->broadcast(tensors, options); });
}

CheckedBackend::WorkPtr CheckedBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                  const c10d::AllgatherOptions& options) {
  return run({.operation = Operation::allgather, .asynchronous = options.asyncOp}, inputs,
             [&] { return inner_->allgather(outputs, inputs, options); });
}

CheckedBackend::WorkPtr CheckedBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                        const c10d::AllgatherOptions& options) {
  return run({.operation = Operation::allgather, .form = Form::tensor, .asynchronous = options.asyncOp}, {input},
             [&] { return inner_->_allgather_base(output, input, options); });
}

CheckedBackend::WorkPtr CheckedBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                                            const c10d::AllgatherOptions& options) {
  return run({.operation = Operation::allgather, .form = Form::coalesced, .asynchronous = options.asyncOp}, inputs,
             [&] { return inner_->allgather_coalesced(outputs, inputs, options); });
}

CheckedBackend::WorkPtr CheckedBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                        const c10d::AllgatherOptions& options) {
  return run({.operation = Operation::allgather, .form = Form::coalesced, .asynchronous = options.asyncOp}, inputs,
             [&] { return inner_->allgather_into_tensor_coalesced(outputs, inputs, options); });
}

CheckedBackend::WorkPtr CheckedBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                               const c10d::GatherOptions& options) {
  return run({.operation = Operation::gather, .peer = root(options.rootRank), .asynchronous = options.asyncOp}, inputs,
             [&] { return inner_->gather(outputs, inputs, options); });
}

CheckedBackend::WorkPtr CheckedBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                const c10d::ScatterOptions& options) {
  // What all ranks have is the part that each gets; the root's list of parts is its own.
  const auto given = next_call.inputs;
  next_call.inputs = nullptr;
  auto work = run({.operation = Operation::scatter, .peer = root(options.rootRank), .asynchronous = options.asyncOp},
                  outputs, [&] { return inner_->scatter(outputs, inputs, options); });
  next_call.inputs = given;
  return work;
}

CheckedBackend::WorkPtr CheckedBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                       const c10d::ReduceScatterOptions& options) {
  return run({.operation = Operation::reduce_scatter,
              .reduce_op = number_of(options.reduceOp),
              .asynchronous = options.asyncOp},
             inputs.empty() ? Tensors{} : inputs.front(),
             [&] { return inner_->reduce_scatter(outputs, inputs, options); });
}

CheckedBackend::WorkPtr CheckedBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                             const c10d::ReduceScatterOptions& options) {
  return run({.operation = Operation::reduce_scatter,
              .form = Form::tensor,
              .reduce_op = number_of(options.reduceOp),
              .asynchronous = options.asyncOp},
             {input}, [&] { return inner_->_reduce_scatter_base(output, input, options); });
}

CheckedBackend::WorkPtr CheckedBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                        const c10d::ReduceScatterOptions& options) {
  return run({.operation = Operation::reduce_scatter,
              .form = Form::coalesced,
              .reduce_op = number_of(options.reduceOp),
              .asynchronous = options.asyncOp},
             inputs, [&] { return inner_->reduce_scatter_tensor_coalesced(outputs, inputs, options); });
}

CheckedBackend::WorkPtr CheckedBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                      std::vector<std::int64_t>& output_splits,
                                                      std::vector<std::int64_t>& input_splits,
                                                      const c10d::AllToAllOptions& options) {
  const auto sends = elements_per_rank(input, input_splits, getSize());
  const auto receives = elements_per_rank(output, output_splits, getSize());
  return run({.operation = Operation::alltoall,
              .form = Form::tensor,
              .asynchronous = options.asyncOp,
              .sends = sends,
              .receives = receives},
             {input}, [&] { return inner_->alltoall_base(output, input, output_splits, input_splits, options); });
}

CheckedBackend::WorkPtr CheckedBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                                 const c10d::AllToAllOptions& options) {
  const auto sends = elements_of(inputs);
  const auto receives = elements_of(outputs);
  return run({.operation = Operation::alltoall, .asynchronous = options.asyncOp, .sends = sends, .receives = receives},
             inputs, [&] { return inner_->alltoall(outputs, inputs, options); });
}

CheckedBackend::WorkPtr CheckedBackend::send(Tensors& tensors, int to, int tag) {
  return run({.operation = Operation::send, .peer = to, .tag = tag}, tensors,
             [&] { return inner_->send(tensors, to, tag); });
}

CheckedBackend::WorkPtr CheckedBackend::recv(Tensors& tensors, int from, int tag) {
  return run({.operation = Operation::recv, .peer = from, .tag = tag}, tensors,
             [&] { return inner_->recv(tensors, from, tag); });
}

CheckedBackend::WorkPtr CheckedBackend::recvAnysource(Tensors& tensors, int tag) {
  return run({.operation = Operation::recv, .tag = tag}, tensors, [&] { return inner_->recvAnysource(tensors, tag); });
}

CheckedBackend::WorkPtr CheckedBackend::barrier(const c10d::BarrierOptions& options) {
  return run({.operation = Operation::barrier, .asynchronous = options.asyncOp}, {},
             [&] { return inner_->barrier(options); });
}

void CheckedBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
  Call call{.operation = Operation::barrier, .form = Form::tensor};
  const auto wait = post(call, {});
  waiting(rank_->rank, wait, [&] { inner_->monitoredBarrier(options, wait_all_ranks); });
}

}  // namespace lockstep::sim
