#include "lockstep/data/dispatch.h"

#include <ATen/ops/tensor.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/comm/operations.h"
#include "lockstep/value/tensor_ops.h"
#include "lockstep/value/traverse.h"

namespace lockstep::data {
namespace {

constexpr const char* kWhere = "DataLoaderDispatcher";

// What is announced before the tensors: none at the end, or a dict of one of these forms.
constexpr const char* kStructure = "structure";  // with the batch's indices and padding
constexpr const char* kIndices = "indices";
constexpr const char* kPadding = "padding";
constexpr const char* kFailure = "failure";  // with its message
constexpr const char* kMessage = "message";

void send(Value announcement, const comm::ProcessGroup& group) {
  std::vector<Value> list{std::move(announcement)};
  comm::broadcast_object_list(list, group);
}

Value receive(const comm::ProcessGroup& group) {
  std::vector<Value> list{Value()};
  return comm::broadcast_object_list(list, group).front();
}

// The same kind on every rank. An Error's kind is a literal, so what arrived is looked up among those there are.
[[noreturn]] void throw_failure_of_rank_0(const Value& announcement) {
  constexpr std::array<std::string_view, 10> kinds = {
      "ValueError",          "TypeError",   "IndexError", "KeyError",       "AttributeError",
      "NotImplementedError", "ImportError", "OSError",    "AssertionError", "DistributedOperationException"};
  const auto* const kind = std::ranges::find(kinds, announcement[kFailure].string());
  throw RelayedError(kind == kinds.end() ? "RuntimeError" : *kind, /*rank=*/0, announcement[kMessage].string(),
                     c10::str(kWhere, ": reading for all ranks"));
}

void require_tensors(const Value& batch) {
  value::for_each_leaf(batch, [](const std::string& path, const Value& leaf) {
    if (leaf.is_tensor()) return;
    throw TypeError({.where = kWhere,
                     .expected = c10::str("a tensor at ", value::path_text(path), ", to send to the other ranks"),
                     .got = leaf.type_name(),
                     .fix = "Make tensors of it in the collate function, or pass dispatch_batches=false."});
  });
}

// What the other ranks need to know to take the batch, which is made ready to be sent. None at the end of the pass.
Value prepare_to_send(std::optional<LoadedBatch>& batch, const DispatchOptions& options) {
  if (!batch) return {};
  require_tensors(batch->value);
  if (options.device) {
    batch->value = value::send_to_device(batch->value, *options.device, {.non_blocking = options.non_blocking});
  }
  batch->value = value::map_tensors(batch->value, [](const at::Tensor& tensor) { return tensor.contiguous(); });
  return Value::dict({{kStructure, value::get_data_structure(batch->value)},
                      {kIndices, at::tensor(batch->items.indices, at::kLong)},
                      {kPadding, batch->items.num_padding}});
}

// Whatever fails before there is an announcement is announced in its place, for the others wait for one.
std::optional<LoadedBatch> send_next(const std::function<std::optional<LoadedBatch>()>& read,
                                     const comm::ProcessGroup& group, const DispatchOptions& options) {
  const auto fail = [&group](std::string_view kind, const std::string& message) {
    send(Value::dict({{kFailure, kind}, {kMessage, message}}), group);
  };
  std::optional<LoadedBatch> batch;
  Value announcement;
  try {
    batch = read();
    announcement = prepare_to_send(batch, options);
  } catch (const std::exception& error) {
    fail(kind_of(error), brief(error));
    throw;
  } catch (...) {
    fail("RuntimeError", "an exception of unknown type");
    throw;
  }
  send(std::move(announcement), group);
  if (batch) comm::broadcast(batch->value, group);
  return batch;
}

std::optional<LoadedBatch> receive_next(const comm::ProcessGroup& group, const DispatchOptions& options) {
  const auto announcement = receive(group);
  if (announcement.is_none()) return std::nullopt;
  if (announcement.contains(kFailure)) throw_failure_of_rank_0(announcement);
  const auto& indices = announcement[kIndices].tensor();
  const auto* first = indices.const_data_ptr<std::int64_t>();
  auto batch = value::initialize_tensors(announcement[kStructure], options.device.value_or(at::kCPU));
  return LoadedBatch{
      .value = comm::broadcast(batch, group),
      .items = {.indices = {first, first + indices.numel()}, .num_padding = announcement[kPadding].integer()}};
}

}  // namespace

std::optional<LoadedBatch> dispatch(const std::function<std::optional<LoadedBatch>()>& read,
                                    const comm::ProcessGroup& group, const DispatchOptions& options) {
  if (group && group.size() > 1) {
    return group.rank() == 0 ? send_next(read, group, options) : receive_next(group, options);
  }
  auto batch = read();
  if (batch && options.device) {
    batch->value = value::send_to_device(batch->value, *options.device, {.non_blocking = options.non_blocking});
  }
  return batch;
}

}  // namespace lockstep::data
