#include "lockstep/value/tensor_ops.h"

#include <ATen/ops/cat.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/value/traverse.h"

namespace lockstep::value {

namespace {

void check_has_rows(const at::Tensor& tensor, const char* operation) {
  if (tensor.dim() > 0) return;
  throw OutOfRange({.where = operation, .expected = "a tensor with rows", .got = "a 0-dim tensor"});
}

Value join(const std::vector<Value>& leaves, const std::string& path, std::int64_t dim) {
  if (leaves.size() == 1 && !leaves.front().is_tensor()) return leaves.front();
  std::vector<at::Tensor> tensors;
  for (const auto& leaf : leaves) {
    if (!leaf.is_tensor()) {
      throw TypeError({.where = "concatenate", .expected = "a tensor at " + path_text(path), .got = leaf.type_name()});
    }
    tensors.push_back(leaf.tensor());
  }
  try {
    return at::cat(tensors, dim);
  } catch (const c10::IndexError& error) {
    throw OutOfRange("concatenate at " + path_text(path) + ": " + brief(error));
  } catch (const c10::Error& error) {
    throw RuntimeError("concatenate: the tensors at " + path_text(path) + " do not fit: " + brief(error));
  }
}

/// The first leaf, or the empty container that stands in its place.
const Value& first_leaf(const Value& value) {
  if (!value.is_container() || value.size() == 0) return value;
  return first_leaf(value.child(0));
}

std::int64_t rows_of(const at::Tensor& tensor) {
  check_has_rows(tensor, "find_batch_size");
  return tensor.size(0);
}

at::Tensor repeat_last_row(const at::Tensor& tensor, std::int64_t num_rows, std::int64_t dim) {
  if (num_rows == 0) return tensor;
  check_has_rows(tensor, "pad_input_tensors");
  const auto rows = tensor.size(dim);
  if (rows == 0) {
    throw OutOfRange(
        {.where = "pad_input_tensors", .expected = "a last row to repeat", .got = "a tensor without rows"});
  }
  auto sizes = tensor.sizes().vec();
  sizes[static_cast<std::size_t>(dim < 0 ? dim + tensor.dim() : dim)] = num_rows;
  return at::cat({tensor, tensor.narrow(dim, rows - 1, 1).expand(sizes)}, dim);
}

bool contains(const std::vector<Value::Key>& keys, const Value::Key& key) {
  return std::ranges::find(keys, key) != keys.end();
}

}  // namespace

Value slice(const Value& value, std::int64_t begin, std::int64_t end) {
  return map_tensors(value, [&](const at::Tensor& tensor) {
    check_has_rows(tensor, "slice");
    return tensor.slice(/*dim=*/0, begin, end);
  });
}

Value concatenate(const std::vector<Value>& values, std::int64_t dim) {
  if (values.empty()) throw OutOfRange({.where = "concatenate", .expected = "at least one value", .got = "none"});
  const auto join_leaves = [dim](const std::vector<Value>& leaves, const std::string& path) {
    return join(leaves, path, dim);
  };
  return zip_leaves(values, join_leaves, Match::first);
}

std::int64_t find_batch_size(const Value& value) {
  const auto& leaf = first_leaf(value);
  if (leaf.is_tensor()) return rows_of(leaf.tensor());
  if (leaf.is_container()) {
    throw InvalidArgument(
        {.where = "find_batch_size", .expected = "a tensor to read it off", .got = "an empty " + leaf.type_name()});
  }
  throw TypeError({.where = "find_batch_size", .expected = "a tensor as the first leaf", .got = leaf.type_name()});
}

std::optional<std::int64_t> find_batch_size_or_none(const Value& value) {
  const auto& leaf = first_leaf(value);
  return leaf.is_tensor() ? std::optional(rows_of(leaf.tensor())) : std::nullopt;
}

std::optional<at::Device> find_device(const Value& value) {
  if (value.is_tensor()) return value.tensor().device();
  if (!value.is_container()) return std::nullopt;
  for (std::size_t position = 0; position < value.size(); ++position) {
    if (const auto device = find_device(value.child(position))) return device;
  }
  return std::nullopt;
}

Value send_to_device(const Value& value, at::Device device, const SendOptions& options) {
  // "cpu" and "cpu:0" are one device, but not to LibTorch, which would copy.
  if (value.is_tensor() && value.tensor().is_cpu() && device.is_cpu()) return value;
  if (value.is_tensor()) return value.tensor().to(device, options.non_blocking);
  if (!value.is_container()) return value;
  return map_children(value, [&](const Value& child, std::size_t position) {
    const bool stays = value.is_dict() && contains(options.skip_keys, value.entries()[position].first);
    return stays ? child : send_to_device(child, device, options);
  });
}

Value convert_to_fp32(const Value& value) {
  return map_tensors(value, [](const at::Tensor& tensor) {
    const auto dtype = tensor.scalar_type();
    return dtype == at::kHalf || dtype == at::kBFloat16 ? tensor.to(at::kFloat) : tensor;
  });
}

Value pad_input_tensors(const Value& value, std::int64_t batch_size, std::int64_t num_processes, std::int64_t dim) {
  if (batch_size < 0 || num_processes < 1) {
    throw InvalidArgument({.where = "pad_input_tensors",
                           .expected = "batch_size >= 0 and num_processes >= 1",
                           .got = c10::str("batch_size ", batch_size, " and num_processes ", num_processes)});
  }
  const auto missing = (num_processes - batch_size % num_processes) % num_processes;
  return map_tensors_or_throw(
      value, [&](const at::Tensor& tensor) { return repeat_last_row(tensor, missing, dim); }, "pad_input_tensors");
}

}  // namespace lockstep::value
