#include "lockstep/value/traverse.h"

#include <algorithm>
#include <cctype>

#include "lockstep/base/error.h"

namespace lockstep::value {

namespace {

bool is_plain_name(const std::string& name) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::ranges::all_of(name, is_word) && std::isdigit(static_cast<unsigned char>(name[0])) == 0;
}

std::string with_name(const std::string& path, const std::string& name) {
  if (!is_plain_name(name)) return path + "[\"" + name + "\"]";
  return path.empty() ? name : path + "." + name;
}

using PathFunction = std::function<Value(const std::string& path, const Value& leaf)>;

Value map_with_path(const Value& value, const std::string& path, const PathFunction& fn) {
  if (!value.is_container()) return fn(path, value);
  return map_children(value, [&](const Value& child, std::size_t position) {
    return map_with_path(child, child_path(path, value, position), fn);
  });
}

void visit(const Value& value, const std::function<void(const Value&)>& fn) {
  if (!value.is_container()) return fn(value);
  for (std::size_t position = 0; position < value.size(); ++position) visit(value.child(position), fn);
}

void visit_with_path(const Value& value, const std::string& path,
                     const std::function<void(const std::string&, const Value&)>& fn) {
  if (!value.is_container()) return fn(path, value);
  for (std::size_t position = 0; position < value.size(); ++position) {
    visit_with_path(value.child(position), child_path(path, value, position), fn);
  }
}

}  // namespace

std::string path_text(const std::string& path) { return path.empty() ? "the value" : path; }

std::string child_path(const std::string& path, const Value& container, std::size_t position) {
  if (container.is_named_tuple()) return with_name(path, container.fields()[position]);
  if (!container.is_dict()) return path + "[" + std::to_string(position) + "]";
  const auto& key = container.entries()[position].first;
  return key.is_string() ? with_name(path, key.string()) : path + "[" + to_text(key) + "]";
}

Value map_children(const Value& value, const std::function<Value(const Value&, std::size_t)>& fn) {
  std::vector<Value> children;
  children.reserve(value.size());
  for (std::size_t position = 0; position < value.size(); ++position) {
    children.push_back(fn(value.child(position), position));
  }
  return value.with_children(std::move(children));
}

Value map_leaves(const Value& value, const LeafFunction& fn) {
  if (!value.is_container()) return fn(value);
  return map_children(value, [&](const Value& child, std::size_t) { return map_leaves(child, fn); });
}

Value map_tensors(const Value& value, const TensorFunction& fn) {
  return map_leaves(value, [&](const Value& leaf) { return leaf.is_tensor() ? fn(leaf.tensor()) : leaf; });
}

Value map_tensors_or_throw(const Value& value, const TensorFunction& fn, const std::string& operation) {
  return map_with_path(value, "", [&](const std::string& path, const Value& leaf) {
    if (leaf.is_tensor()) return fn(leaf.tensor());
    throw TypeError({.where = operation, .expected = "a tensor at " + path_text(path), .got = leaf.type_name()});
  });
}

void for_each_leaf(const Value& value, const std::function<void(const std::string&, const Value&)>& fn) {
  visit_with_path(value, "", fn);
}

void for_each_tensor(const Value& value, const std::function<void(const at::Tensor&)>& fn) {
  visit(value, [&](const Value& leaf) {
    if (leaf.is_tensor()) fn(leaf.tensor());
  });
}

std::vector<at::Tensor> tensors_of(const Value& value) {
  std::vector<at::Tensor> tensors;
  for_each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

std::int64_t num_tensors(const Value& value) {
  std::int64_t count = 0;
  for_each_tensor(value, [&](const at::Tensor&) { ++count; });
  return count;
}

bool has_non_tensor_leaf(const Value& value) {
  bool found = false;
  visit(value, [&](const Value& leaf) { found = found || !leaf.is_tensor(); });
  return found;
}

}  // namespace lockstep::value
