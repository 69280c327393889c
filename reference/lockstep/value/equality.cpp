// When two Values are the same.
#include <algorithm>
#include <bit>
#include <cstring>

#include "lockstep/value/value.h"

namespace lockstep {

namespace {

bool same_bits(double left, double right) {
  return std::bit_cast<std::uint64_t>(left) == std::bit_cast<std::uint64_t>(right);
}

bool same_bits(const at::Tensor& left, const at::Tensor& right) {
  const auto one = left.detach().cpu().contiguous();
  const auto other = right.detach().cpu().contiguous();
  return std::memcmp(one.const_data_ptr(), other.const_data_ptr(), one.nbytes()) == 0;
}

/// A tensor on the meta device has no elements to compare; it equals another such tensor of its description.
bool same_tensor(const at::Tensor& left, const at::Tensor& right) {
  if (left.scalar_type() != right.scalar_type() || left.sizes() != right.sizes()) return false;
  if (left.is_meta() || right.is_meta()) return left.is_meta() == right.is_meta();
  return left.numel() == 0 || same_bits(left, right);
}

bool same_children(const Value& left, const Value& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t position = 0; position < left.size(); ++position) {
    if (!(left.child(position) == right.child(position))) return false;
  }
  return true;
}

bool same_keys(const Value& left, const Value& right) {
  return std::ranges::equal(left.entries(), right.entries(), {}, &Value::Entry::first, &Value::Entry::first);
}

}  // namespace

bool operator==(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Value::Kind::none: return true;
    case Value::Kind::boolean: return left.boolean() == right.boolean();
    case Value::Kind::integer: return left.integer() == right.integer();
    case Value::Kind::real: return same_bits(left.real(), right.real());
    case Value::Kind::string: return left.string() == right.string();
    case Value::Kind::bytes: return left.bytes() == right.bytes();
    case Value::Kind::tensor: return same_tensor(left.tensor(), right.tensor());
    case Value::Kind::list:
    case Value::Kind::tuple: return same_children(left, right);
    case Value::Kind::named_tuple:
      return left.named_tuple_name() == right.named_tuple_name() && left.fields() == right.fields() &&
             same_children(left, right);
    case Value::Kind::dict: return same_children(left, right) && same_keys(left, right);
    case Value::Kind::opaque:
      return std::get<Value::Opaque>(left.data_).object == std::get<Value::Opaque>(right.data_).object;
  }
  return false;
}

}  // namespace lockstep
