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

// Collects the tensors in what a forward returns: a tensor, a Value, or standard containers of them. A type that is not
// listed here contributes none, which matters to find_unused_parameters alone: it follows the graph from these tensors.
inline void collect_tensors(const at::Tensor& tensor, std::vector<at::Tensor>& into) {
  if (tensor.defined()) into.push_back(tensor);
}
inline void collect_tensors(const Value& value, std::vector<at::Tensor>& into) {
  for (const auto& tensor : value::tensors_of(value)) into.push_back(tensor);
}
template <typename T>
void collect_tensors(const std::vector<T>& list, std::vector<at::Tensor>& into);
template <typename T>
void collect_tensors(const std::optional<T>& maybe, std::vector<at::Tensor>& into);
template <typename K, typename V>
void collect_tensors(const std::map<K, V>& map, std::vector<at::Tensor>& into);
template <typename K, typename V>
void collect_tensors(const std::unordered_map<K, V>& map, std::vector<at::Tensor>& into);
template <typename A, typename B>
void collect_tensors(const std::pair<A, B>& pair, std::vector<at::Tensor>& into);
template <typename... T>
void collect_tensors(const std::tuple<T...>& tuple, std::vector<at::Tensor>& into);

template <typename Other>
requires(!std::is_convertible_v<const Other&, Value> &&
         !std::is_convertible_v<const Other&, at::Tensor>) void collect_tensors(const Other&,
                                                                                std::vector<at::Tensor>&) {}

template <typename T>
void collect_tensors(const std::vector<T>& list, std::vector<at::Tensor>& into) {
  for (const auto& item : list) collect_tensors(item, into);
}
template <typename T>
void collect_tensors(const std::optional<T>& maybe, std::vector<at::Tensor>& into) {
  if (maybe) collect_tensors(*maybe, into);
}
template <typename K, typename V>
void collect_tensors(const std::map<K, V>& map, std::vector<at::Tensor>& into) {
  for (const auto& [key, item] : map) collect_tensors(item, into);
}
template <typename K, typename V>
void collect_tensors(const std::unordered_map<K, V>& map, std::vector<at::Tensor>& into) {
  for (const auto& [key, item] : map) collect_tensors(item, into);
}
template <typename A, typename B>
void collect_tensors(const std::pair<A, B>& pair, std::vector<at::Tensor>& into) {
  collect_tensors(pair.first, into);
  collect_tensors(pair.second, into);
}
template <typename... T>
void collect_tensors(const std::tuple<T...>& tuple, std::vector<at::Tensor>& into) {
  std::apply([&into](const auto&... item) { (collect_tensors(item, into), ...); }, tuple);
}

template <typename Output>
std::vector<at::Tensor> tensors_in(const Output& output) {
  std::vector<at::Tensor> tensors;
  collect_tensors(output, tensors);
  return tensors;
}

}  // namespace lockstep::modules
