#include "lockstep/sim/backend/call_checker.h"

#include <ATen/ops/empty.h>

#include "lockstep/sim/backend/caller.h"
#include "lockstep/sim/backend/checked_work.h"

namespace lockstep::sim {
namespace {

void add_shapes(Shapes& shapes, const at::Tensor* tensors, std::size_t count, bool only_rows) {
  for (std::size_t i = 0; i < count; ++i) {
    auto sizes = tensors[i].sizes();
    if (only_rows && !sizes.empty()) sizes = sizes.slice(1);
    shapes.add(static_cast<std::uint8_t>(tensors[i].scalar_type()), std::span(sizes.data(), sizes.size()));
  }
}

}  // namespace

CallChecker::CallChecker(std::shared_ptr<WatchedRank> rank, std::shared_ptr<CheckedGroup> group)
    : rank_(std::move(rank)), group_(std::move(group)) {}

layout::Wait CallChecker::post(Call& call, const std::vector<at::Tensor>& tensors, Compared compared) const {
  if (rank_->rank->options().level == Level::off) return {};
  Frames frames;
  const auto caller = describe_caller(tensors, frames);
  Shapes shapes;
  const bool only_rows = call.operation == Operation::alltoall;  // how many rows is said by the splits
  if (caller.inputs != nullptr && compared == Compared::callers) {
    add_shapes(shapes, caller.inputs, caller.num_inputs, only_rows);
  } else {
    add_shapes(shapes, tensors.data(), tensors.size(), only_rows);
  }
  call.shapes = &shapes;
  return with_verdict_as_error([&] { return group_->post(call, caller.context); });
}

std::vector<std::int64_t> elements_per_rank(const at::Tensor& tensor, const std::vector<std::int64_t>& splits,
                                            int size) {
  const auto rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  const auto per_row = rows == 0 ? 0 : tensor.numel() / rows;
  std::vector<std::int64_t> elements(static_cast<std::size_t>(size), rows / size * per_row);
  for (std::size_t i = 0; i < splits.size() && i < elements.size(); ++i) elements[i] = splits[i] * per_row;
  return elements;
}

std::vector<std::int64_t> elements_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> elements;
  for (const auto& tensor : tensors) elements.push_back(tensor.numel());
  return elements;
}

std::vector<at::Tensor> dense_shapes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> dense;
  for (const auto& tensor : tensors)
    dense.push_back(at::empty(tensor.sizes(), tensor.options().layout(at::kStrided).device(at::kMeta)));
  return dense;
}

}  // namespace lockstep::sim
