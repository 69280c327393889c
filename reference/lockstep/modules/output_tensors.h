#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/value/traverse.h"
#include "lockstep/value/value.h"

namespace lockstep::modules {

// Visits the tensors in what a forward returns: a tensor, a Value, or standard containers of them. `fn` gets each as
// at::Tensor& and may replace it. A type that is not listed here contributes none: find_unused_parameters does not
// follow the graph from it, and mixed precision leaves its tensors' dtype. A type of yours is listed by a function
// visit_tensors(Type&, const Fn&) in its own namespace.
template <typename Fn>
void visit_tensors(at::Tensor& tensor, const Fn& fn) {
  if (tensor.defined()) fn(tensor);
}
template <typename Fn>
void visit_tensors(Value& value, const Fn& fn) {
  value = value::map_tensors(value, [&fn](at::Tensor tensor) {
    fn(tensor);
    return tensor;
  });
}
template <typename T, typename Fn>
void visit_tensors(std::vector<T>& list, const Fn& fn);
template <typename T, typename Fn>
void visit_tensors(std::optional<T>& maybe, const Fn& fn);
template <typename K, typename V, typename Fn>
void visit_tensors(std::map<K, V>& map, const Fn& fn);
template <typename K, typename V, typename Fn>
void visit_tensors(std::unordered_map<K, V>& map, const Fn& fn);
template <typename A, typename B, typename Fn>
void visit_tensors(std::pair<A, B>& pair, const Fn& fn);
template <typename... T, typename Fn>
void visit_tensors(std::tuple<T...>& tuple, const Fn& fn);

// Anything else; least of all candidates.
template <typename Fn>
void visit_tensors(const volatile auto&, const Fn&) {}

template <typename T, typename Fn>
void visit_tensors(std::vector<T>& list, const Fn& fn) {
  for (auto&& item : list) visit_tensors(item, fn);  // std::vector<bool> has items of its own kind
}
template <typename T, typename Fn>
void visit_tensors(std::optional<T>& maybe, const Fn& fn) {
  if (maybe) visit_tensors(*maybe, fn);
}
template <typename K, typename V, typename Fn>
void visit_tensors(std::map<K, V>& map, const Fn& fn) {
  for (auto& [key, item] : map) visit_tensors(item, fn);
}
template <typename K, typename V, typename Fn>
void visit_tensors(std::unordered_map<K, V>& map, const Fn& fn) {
  for (auto& [key, item] : map) visit_tensors(item, fn);
}
template <typename A, typename B, typename Fn>
void visit_tensors(std::pair<A, B>& pair, const Fn& fn) {
  visit_tensors(pair.first, fn);
  visit_tensors(pair.second, fn);
}
template <typename... T, typename Fn>
void visit_tensors(std::tuple<T...>& tuple, const Fn& fn) {
  std::apply([&fn](auto&... item) { (visit_tensors(item, fn), ...); }, tuple);
}

template <typename Output>
std::vector<at::Tensor> tensors_in(Output& output) {
  std::vector<at::Tensor> tensors;
  visit_tensors(output, [&tensors](const at::Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

/// Every float16 and bfloat16 tensor as float32, at any depth; whatever else there is stays.
/// @clause AMP-003
template <typename Output>
Output to_float32(Output output) {
  visit_tensors(output, [](at::Tensor& tensor) {
    const bool is_low = tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
    if (is_low) tensor = tensor.to(at::kFloat);
  });
  return output;
}

}  // namespace lockstep::modules
