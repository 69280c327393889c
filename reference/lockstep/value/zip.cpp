// The walk over several values at once.
#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/value/traverse.h"

namespace lockstep::value {

namespace {

std::string where(const std::string& path, std::size_t index) {
  return (path.empty() ? "" : path + " of ") + "value " + std::to_string(index);
}

[[noreturn]] void throw_other_kind(const Value& first, const Value& other, const std::string& at) {
  throw TypeError({.where = at, .expected = first.type_name() + " as in the first", .got = other.type_name()});
}

std::string described(const Value& container) {
  return container.type_name() + " of size " + std::to_string(container.size());
}

void check_same_container(const Value& first, const Value& other, const std::string& at) {
  if (other.kind() != first.kind()) throw_other_kind(first, other, at);
  const bool same_names = !first.is_named_tuple() ||
                          (first.named_tuple_name() == other.named_tuple_name() && first.fields() == other.fields());
  if (same_names && other.size() == first.size()) return;
  const auto fields = same_names ? "" : ", its name and fields";
  throw InvalidArgument(
      {.where = at, .expected = described(first) + fields + " as in the first", .got = described(other)});
}

void check_match(const Value& first, const Value& other, Match match, const std::string& at) {
  if (match == Match::exact) {
    if (first.is_container() || other.is_container()) check_same_container(first, other, at);
    return;
  }
  // Any sequence can stand in for another, and any dict for a dict.
  const bool comparable = first.is_dict() ? other.is_dict() : !first.is_sequence() || other.is_sequence();
  if (!comparable) throw_other_kind(first, other, at);
}

/// What `other` has at the place of the first value's child `position`.
const Value& counterpart(const Value& first, const Value& other, std::size_t position, const std::string& at) {
  if (first.is_dict()) {
    if (const auto* found = other.find(first.entries()[position].first)) return *found;
    throw KeyError({.where = at, .expected = "an entry as in the first", .got = to_text(other)});
  }
  if (position < other.size()) return other.child(position);
  throw OutOfRange({.where = at, .expected = "an item as in the first", .got = described(other)});
}

using Row = std::vector<const Value*>;  // what stands at one place, one per value

Value zip_at(const Row& row, const std::string& path, const ZipFunction& fn, Match match) {
  const auto& first = *row.front();
  for (std::size_t index = 1; index < row.size(); ++index) check_match(first, *row[index], match, where(path, index));
  if (!first.is_container()) {
    std::vector<Value> leaves;
    for (const auto* leaf : row) leaves.push_back(*leaf);
    return fn(leaves, path);
  }
  return map_children(first, [&](const Value& child, std::size_t position) {
    const auto here = child_path(path, first, position);
    Row children{&child};
    for (std::size_t index = 1; index < row.size(); ++index) {
      children.push_back(&counterpart(first, *row[index], position, where(here, index)));
    }
    return zip_at(children, here, fn, match);
  });
}

}  // namespace

Value zip_leaves(const std::vector<Value>& values, const ZipFunction& fn, Match match) {
  if (values.empty()) throw OutOfRange({.where = "zip", .expected = "at least one value", .got = "none"});
  Row row;
  for (const auto& value : values) row.push_back(&value);
  return zip_at(row, "", fn, match);
}

Value map_tensors_zip(const std::vector<Value>& values,
                      const std::function<Value(const std::vector<at::Tensor>&)>& fn) {
  return zip_leaves(values, [&](const std::vector<Value>& leaves, const std::string& path) -> Value {
    if (std::ranges::none_of(leaves, &Value::is_tensor)) return leaves.front();
    std::vector<at::Tensor> tensors;
    for (const auto& leaf : leaves) {
      if (!leaf.is_tensor()) {
        throw TypeError(
            {.where = where(path, tensors.size()), .expected = "a tensor as in the others", .got = leaf.type_name()});
      }
      tensors.push_back(leaf.tensor());
    }
    return fn(tensors);
  });
}

}  // namespace lockstep::value
