// Tensors as plain data: their numbers, or their description.
#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/value/dtype.h"
#include "lockstep/value/tensor_ops.h"
#include "lockstep/value/traverse.h"

namespace lockstep::value {

namespace {

constexpr const char* kInformation = "TensorInformation";

bool is_information(const Value& value) {
  return value.is_named_tuple() && value.named_tuple_name() == kInformation &&
         value.fields() == std::vector<std::string>{"shape", "dtype"};
}

Value information_of(const at::Tensor& tensor) {
  return Value::named_tuple(kInformation,
                            {{"shape", Value::list_of(tensor.sizes())}, {"dtype", dtype_name(tensor.scalar_type())}});
}

at::Tensor empty_like_information(const Value& information, at::Device device) {
  std::vector<std::int64_t> shape;
  for (const auto& size : information["shape"].items()) shape.push_back(size.integer());
  return at::empty(shape, at::TensorOptions(dtype_from_name(information["dtype"].string())).device(device));
}

/// @param tensor  on the CPU, contiguous, of dtype double, int64 or bool
template <typename Element>
Value nested_list(const at::Tensor& tensor) {
  if (tensor.dim() == 0) return tensor.item<Element>();
  std::vector<Value> items;
  items.reserve(static_cast<std::size_t>(tensor.size(0)));
  if (tensor.dim() > 1) {
    for (std::int64_t row = 0; row < tensor.size(0); ++row) items.push_back(nested_list<Element>(tensor[row]));
  } else {
    const auto* elements = tensor.const_data_ptr<Element>();
    for (std::int64_t i = 0; i < tensor.size(0); ++i) items.emplace_back(elements[i]);
  }
  return Value::list(std::move(items));
}

Value numbers_of(const at::Tensor& tensor) {
  if (tensor.is_complex()) {
    throw NotSupported({.where = "listify", .expected = "real numbers", .got = "a complex tensor"});
  }
  const auto plain = tensor.detach().cpu().contiguous();
  if (plain.scalar_type() == at::kBool) return nested_list<bool>(plain);
  if (plain.is_floating_point()) return nested_list<double>(plain.to(at::kDouble));
  return nested_list<std::int64_t>(plain.to(at::kLong));
}

}  // namespace

Value listify(const Value& value) { return map_tensors(value, numbers_of); }

Value get_data_structure(const Value& value) { return map_tensors(value, information_of); }

Value initialize_tensors(const Value& structure, at::Device device) {
  if (is_information(structure)) return empty_like_information(structure, device);
  if (!structure.is_container()) return structure;
  return map_children(structure, [&](const Value& child, std::size_t) { return initialize_tensors(child, device); });
}

}  // namespace lockstep::value
