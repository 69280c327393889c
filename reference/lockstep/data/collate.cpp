#include "lockstep/data/collate.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <c10/util/StringUtil.h>

#include "lockstep/base/error.h"
#include "lockstep/value/traverse.h"

namespace lockstep::data {
namespace {

using Leaves = std::vector<Value>;

constexpr const char* kFix = "Make the dataset's items alike, or give the loader a collate function.";

void check_same_kind(const Leaves& leaves, const std::string& path) {
  for (std::size_t i = 1; i < leaves.size(); ++i) {
    if (leaves[i].kind() == leaves[0].kind()) continue;
    throw TypeError({.where = "default_collate",
                     .expected = c10::str(leaves[0].type_name(), " at ", value::path_text(path), " as in item 0"),
                     .got = c10::str(leaves[i].type_name(), " in item ", i),
                     .fix = kFix});
  }
}

Value stack(const Leaves& leaves, const std::string& path) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    tensors.push_back(leaves[i].tensor());
    if (tensors[i].sizes() == tensors[0].sizes()) continue;
    throw RuntimeError({.where = "default_collate",
                        .expected = c10::str("tensors of one shape at ", value::path_text(path), ", ",
                                             tensors[0].sizes(), " in item 0"),
                        .got = c10::str(tensors[i].sizes(), " in item ", i),
                        .fix = kFix});
  }
  return at::stack(tensors);
}

template <typename Number, typename Get>
Value numbers(const Leaves& leaves, at::ScalarType dtype, Get get) {
  auto batch = at::empty({static_cast<std::int64_t>(leaves.size())}, dtype);
  auto* element = batch.mutable_data_ptr<Number>();
  for (const auto& leaf : leaves) *element++ = get(leaf);
  return batch;
}

Value collate_leaves(const Leaves& leaves, const std::string& path) {
  check_same_kind(leaves, path);
  switch (leaves.front().kind()) {
    case Value::Kind::tensor: return stack(leaves, path);
    case Value::Kind::boolean: return numbers<bool>(leaves, at::kBool, [](const Value& v) { return v.boolean(); });
    case Value::Kind::integer:
      return numbers<std::int64_t>(leaves, at::kLong, [](const Value& v) { return v.integer(); });
    case Value::Kind::real: return numbers<double>(leaves, at::kDouble, [](const Value& v) { return v.real(); });
    case Value::Kind::string:
    case Value::Kind::bytes: return Value::list(leaves);
    default:
      throw TypeError({.where = "default_collate",
                       .expected = c10::str("a tensor, number, string or bytes at ", value::path_text(path)),
                       .got = leaves.front().type_name(),
                       .fix = kFix});
  }
}

}  // namespace

Value default_collate(const std::vector<Value>& items) { return value::zip_leaves(items, collate_leaves); }

}  // namespace lockstep::data
