#include "lockstep/comm/operations.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/logging.h"
#include "lockstep/value/ivalue.h"
#include "lockstep/value/tensor_ops.h"
#include "lockstep/value/traverse.h"

namespace lockstep::comm {
namespace {

void verify_in_debug(const Value& value, const ProcessGroup& group, std::string_view operation) {
  if (group.debug()) verify(value, group, operation);
}

at::Tensor gathered(const at::Tensor& shard, const ProcessGroup& group) {
  const auto rows = (shard.dim() == 0 ? shard.unsqueeze(0) : shard).detach().contiguous();
  auto sizes = rows.sizes().vec();
  sizes.front() *= group.size();
  auto all = at::empty(sizes, rows.options());
  group.all_gather(all, rows).wait();
  return all;
}

std::vector<std::int64_t> as_numbers(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<std::int64_t>(), tensor.const_data_ptr<std::int64_t>() + tensor.numel()};
}

std::vector<std::int64_t> gathered_numbers(std::int64_t number, const ProcessGroup& group) {
  auto all = at::empty({group.size()}, at::kLong);
  group.all_gather(all, at::full({1}, number, at::kLong)).wait();
  return as_numbers(all);
}

at::Tensor as_tensor(const std::vector<char>& bytes) {
  auto tensor = at::empty({static_cast<std::int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

std::vector<char> as_bytes(const at::Tensor& tensor) {
  const auto* begin = static_cast<const char*>(tensor.const_data_ptr());
  return {begin, begin + tensor.numel()};
}

// Every rank's object. Lengths travel first; then all send as much as the longest, since all-gather wants equal sizes.
std::vector<Value> gathered_objects(const Value& object, const ProcessGroup& group) {
  const auto bytes = as_tensor(value::to_bytes(object));
  const auto sizes = gathered_numbers(bytes.numel(), group);
  const auto longest = *std::ranges::max_element(sizes);
  auto padded = at::zeros({longest}, at::kByte);
  padded.narrow(0, 0, bytes.numel()).copy_(bytes);
  auto all = at::empty({group.size(), longest}, at::kByte);
  group.all_gather(all, padded).wait();
  std::vector<Value> objects;
  for (std::int64_t rank = 0; rank < group.size(); ++rank) {
    objects.push_back(
        value::from_bytes(as_bytes(all.select(0, rank).narrow(0, 0, sizes[static_cast<std::size_t>(rank)]))));
  }
  return objects;
}

enum class Detail { shapes, all };

std::string describe(const Value& value, Detail detail) {
  std::string text;
  value::for_each_leaf(value, [&](const std::string& path, const Value& leaf) {
    if (!text.empty()) text += ", ";
    if (!path.empty()) text += path + " ";
    if (!leaf.is_tensor()) {
      text += leaf.type_name();
      return;
    }
    text += fmt::format("[{}]", fmt::join(leaf.tensor().sizes(), ", "));
    if (detail == Detail::shapes) return;
    text += fmt::format(" {}", c10::toString(leaf.tensor().scalar_type()));
    if (!leaf.tensor().is_cpu()) text += fmt::format(" on {}", leaf.tensor().device().str());
  });
  return text.empty() ? "no leaves" : text;
}

// The kind of device whose tensors the group's backend carries; none where the name does not say.
std::optional<at::DeviceType> device_kind_of(const ProcessGroup& group) {
  if (group.backend().ends_with("gloo")) return at::kCPU;
  if (group.backend().ends_with("nccl")) return at::kCUDA;
  return std::nullopt;
}

bool is_on_another_device(const Value& value, const ProcessGroup& group) {
  const auto kind = device_kind_of(group);
  return kind && std::ranges::any_of(value::tensors_of(value),
                                     [&kind](const at::Tensor& tensor) { return tensor.device().type() != *kind; });
}

void require_floating(const Value& value, Reduction reduction) {
  if (reduction != Reduction::mean) return;
  value::for_each_tensor(value, [](const at::Tensor& tensor) {
    if (tensor.is_floating_point() || tensor.is_complex()) return;
    throw RuntimeError({.where = "reduce(mean)",
                        .expected = "floating-point elements for a mean",
                        .got = c10::toString(tensor.scalar_type()),
                        .fix = "Convert to a floating-point dtype first, or reduce by sum."});
  });
}

at::Tensor reduced(const at::Tensor& tensor, const ProcessGroup& group, Reduction reduction) {
  auto result =
      tensor.detach().clone(at::MemoryFormat::Contiguous);  // ranks may hold the same shape in different orders
  if (reduction == Reduction::none || !group) return result;
  group.all_reduce(result, {.op = reduction == Reduction::max ? ReduceOp::max : ReduceOp::sum}).wait();
  if (reduction == Reduction::mean) result.div_(group.size());
  return result;
}

at::Tensor padded(const at::Tensor& tensor, const ProcessGroup& group, const PadOptions& options) {
  if (tensor.is_nested()) {
    log::warning("pad_across_processes: a nested tensor has no size to grow, and is returned as it is");
    return tensor;
  }
  const auto dims = tensor.dim();
  if (options.dim >= dims || options.dim < -dims) return tensor;  // a 0-dim tensor has none
  const auto dim = options.dim < 0 ? options.dim + dims : options.dim;
  const auto sizes = gathered_numbers(tensor.size(dim), group);
  const auto longest = *std::ranges::max_element(sizes);
  if (longest == tensor.size(dim)) return tensor;
  auto shape = tensor.sizes().vec();
  shape[static_cast<std::size_t>(dim)] = longest;
  auto result = at::full(shape, options.pad_index, tensor.options());
  const auto begin = options.pad_first ? longest - tensor.size(dim) : 0;
  result.narrow(dim, begin, tensor.size(dim)).copy_(tensor.detach());
  return result;
}

}  // namespace

void verify(const Value& value, const ProcessGroup& group, std::string_view operation) {
  // What is wrong on one rank alone is told to all, so that none waits for it.
  const bool has_tensors = value::num_tensors(value) > 0 && !value::has_non_tensor_leaf(value);
  const bool is_elsewhere = is_on_another_device(value, group);
  constexpr std::size_t shapes = 0, everything = 1, elsewhere = 2;
  const auto everybody = gathered_objects(
      Value::tuple({describe(value, Detail::shapes), describe(value, Detail::all), is_elsewhere}), group);
  if (!has_tensors) {
    throw TypeError({.where = std::string(operation), .expected = "tensors", .got = describe(value, Detail::shapes)});
  }
  const auto differs = [&everybody](std::size_t field) {
    return !std::ranges::all_of(everybody, [&](const Value& one) { return one[field] == everybody.front()[field]; });
  };
  const bool any_elsewhere = std::ranges::any_of(everybody, [](const Value& one) { return one[elsewhere].boolean(); });
  if (!any_elsewhere && !differs(everything)) return;
  const auto shown = differs(shapes) ? shapes : everything;  // shapes say it all unless they are equal
  std::string text;
  for (std::size_t rank = 0; rank < everybody.size(); ++rank) {
    text += fmt::format("\n  - Process {}: {}", rank, everybody[rank][shown].string());
  }
  throw CollectiveMismatch({.where = std::string(operation),
                            .expected = any_elsewhere
                                            ? "tensors on the device that backend " + group.backend() + " serves"
                                            : "the same shapes, dtypes and devices on all ranks",
                            .got = text,
                            .fix = "\nPad with pad_across_processes, convert, or move them before the call."});
}

Value gather(const Value& value, const ProcessGroup& group) {
  if (!group) return value;
  verify_in_debug(value, group, "gather");
  return value::map_tensors_or_throw(
      value, [&](const at::Tensor& shard) { return gathered(shard, group); }, "gather");
}

Value gather_object(const Value& list, const ProcessGroup& group) {
  if (!group) return list;
  if (!list.is_list() && !list.is_tuple()) {
    throw TypeError({.where = "gather_object",
                     .expected = "a list, whose elements are gathered",
                     .got = list.type_name(),
                     .fix = "Wrap it: a list of one."});
  }
  std::vector<Value> all;
  for (const auto& one : gathered_objects(list, group)) all.insert(all.end(), one.items().begin(), one.items().end());
  return Value::list(std::move(all));
}

Reduction reduction_from(std::string_view word) {
  if (word == "none") return Reduction::none;
  if (word == "sum") return Reduction::sum;
  if (word == "mean") return Reduction::mean;
  if (word == "max") return Reduction::max;
  throw InvalidArgument({.where = "reduction",
                         .expected = "none, sum, mean or max",
                         .got = "'" + std::string(word) + "'",
                         .fix = "Pass one of them, in lower case."});
}

Value reduce(const Value& value, const ProcessGroup& group, Reduction reduction) {
  if (group) {
    verify_in_debug(value, group, "reduce");  // first: what follows may throw on one rank alone
    require_floating(value, reduction);
  }
  return value::map_tensors_or_throw(
      value, [&](const at::Tensor& tensor) { return reduced(tensor, group, reduction); }, "reduce");
}

Value broadcast(const Value& value, const ProcessGroup& group, int from_process) {
  if (!group) return value;
  verify_in_debug(value, group, "broadcast");
  return value::map_tensors_or_throw(
      value,
      [&](const at::Tensor& tensor) {
        group.broadcast(tensor.detach(), {.root = Member::global(from_process)}).wait();
        return tensor;
      },
      "broadcast");
}

std::vector<Value>& broadcast_object_list(std::vector<Value>& list, const ProcessGroup& group, int from_process) {
  if (!group) return list;
  const bool is_root = group.rank() == group.group_rank(Member::global(from_process));
  const auto bytes = is_root ? as_tensor(value::to_bytes(Value::list(list))) : at::Tensor();
  auto size = at::full({1}, is_root ? bytes.numel() : 0, at::kLong);
  group.broadcast(size, {.root = Member::global(from_process)}).wait();
  auto buffer = is_root ? bytes : at::empty({size.item<std::int64_t>()}, at::kByte);
  group.broadcast(buffer, {.root = Member::global(from_process)}).wait();
  if (is_root) return list;
  auto received = value::from_bytes(as_bytes(buffer)).items();
  if (received.size() != list.size()) {
    throw InvalidArgument({.where = "broadcast_object_list",
                           .expected = fmt::format("a list of {}, as on process {}", received.size(), from_process),
                           .got = fmt::format("a list of {}", list.size()),
                           .fix = "Pass a list of that length on every rank; its contents are overwritten."});
  }
  list = std::move(received);
  return list;
}

at::Tensor copy_tensor_to_devices(const std::optional<at::Tensor>& tensor, const ProcessGroup& group) {
  const auto has_one = group ? gathered_numbers(tensor ? 1 : 0, group) : std::vector<std::int64_t>{tensor ? 1 : 0};
  const auto num_owners = std::ranges::count(has_one, 1);
  if (num_owners != 1) {
    std::vector<std::size_t> owners;
    for (std::size_t rank = 0; rank < has_one.size(); ++rank) {
      if (has_one[rank] == 1) owners.push_back(rank);
    }
    throw InvalidArgument(
        {.where = "copy_tensor_to_devices",
         .expected = "a tensor on exactly one rank, none on the others",
         .got = num_owners == 0 ? "none at all" : fmt::format("one on each of ranks {}", fmt::join(owners, ", ")),
         .fix = "Pass the tensor on the rank that has it, and nothing on the others."});
  }
  if (!group) return *tensor;
  const auto root = Member::group(static_cast<int>(std::ranges::find(has_one, 1) - has_one.begin()));
  auto form = tensor ? at::tensor({tensor->dim(), static_cast<std::int64_t>(tensor->scalar_type())}, at::kLong)
                     : at::empty({2}, at::kLong);
  group.broadcast(form, {.root = root}).wait();
  const auto numbers = as_numbers(form);
  auto sizes = tensor ? at::tensor(tensor->sizes(), at::kLong) : at::empty({numbers[0]}, at::kLong);
  group.broadcast(sizes, {.root = root}).wait();
  auto copy = tensor ? tensor->detach().clone(at::MemoryFormat::Contiguous)
                     : at::empty(as_numbers(sizes), static_cast<at::ScalarType>(numbers[1]));
  group.broadcast(copy, {.root = root}).wait();
  return copy;
}

Value pad_across_processes(const Value& value, const ProcessGroup& group, const PadOptions& options) {
  if (group && group.debug()) {
    // Sizes may differ here, but not the number of dimensions: a rank without the dimension makes no call.
    const auto dims = value::map_tensors(
        value, [](const at::Tensor& tensor) { return at::zeros({tensor.dim()}, at::device(tensor.device())); });
    verify(dims, group, "pad_across_processes (number of dimensions)");
  }
  return value::map_tensors_or_throw(
      value, [&](const at::Tensor& tensor) { return group ? padded(tensor, group, options) : tensor; },
      "pad_across_processes");
}

}  // namespace lockstep::comm
