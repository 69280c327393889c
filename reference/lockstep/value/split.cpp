#include "lockstep/value/split.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/value/traverse.h"

namespace lockstep::value {

namespace {

constexpr const char* kWhere = "split_between_processes";

/// One rank's elements [begin, end).
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::optional<std::int64_t> padded_size;  ///< what to fill up to
};

Share share_of(std::int64_t length, World world, bool apply_padding) {
  const auto quotient = length / world.size;
  const auto num_extras = length % world.size;
  const auto begin = world.rank * quotient + std::min<std::int64_t>(world.rank, num_extras);
  const auto size = quotient + (world.rank < num_extras ? 1 : 0);
  const auto longest = quotient + (num_extras > 0 ? 1 : 0);
  return {.begin = begin, .end = begin + size, .padded_size = apply_padding ? std::optional(longest) : std::nullopt};
}

/// Characters as Python counts them: bytes of UTF-8 that do not continue one.
std::int64_t num_characters(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

std::int64_t length_of(const Value& value) {
  if (value.is_container()) return static_cast<std::int64_t>(value.size());
  if (value.is_string()) return num_characters(value.string());
  if (value.is_bytes()) return static_cast<std::int64_t>(value.bytes().size());
  if (value.is_tensor() && value.tensor().dim() > 0) return value.tensor().size(0);
  throw TypeError({.where = kWhere,
                   .expected = "something with a length",
                   .got = value.is_tensor() ? "a 0-dim tensor" : value.type_name()});
}

/// A dict's length is that of its first value, which all others have to share.
std::int64_t common_length(const Value& dict) {
  if (dict.size() == 0) throw OutOfRange({.where = kWhere, .expected = "at least one entry", .got = "an empty dict"});
  const auto length = length_of(dict.child(0));
  for (const auto& [key, value] : dict.entries()) {
    if (length_of(value) == length) continue;
    throw InvalidArgument({.where = kWhere,
                           .expected = "values of one length, " + std::to_string(length) + " as the first",
                           .got = "length " + std::to_string(length_of(value)) + " under " + to_text(key)});
  }
  return length;
}

/// How many elements to append to `size` of an input of `length`. To pad, a last one has to exist, needed or not.
std::int64_t num_missing(std::int64_t size, std::int64_t length, const Share& share) {
  if (!share.padded_size) return 0;
  if (length > 0) return std::max<std::int64_t>(0, *share.padded_size - size);
  throw OutOfRange({.where = kWhere, .expected = "a last element to pad with", .got = "an empty input"});
}

Value items_of(const Value& sequence, const Share& share) {
  const auto length = static_cast<std::int64_t>(sequence.size());
  std::vector<Value> items;
  for (auto i = share.begin; i < std::min(share.end, length); ++i) items.push_back(sequence[i]);
  const auto missing = num_missing(static_cast<std::int64_t>(items.size()), length, share);
  for (std::int64_t i = 0; i < missing; ++i) items.push_back(sequence[length - 1]);
  return sequence.is_list() ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

at::Tensor rows_of(const at::Tensor& tensor, const Share& share) {
  if (tensor.dim() == 0) throw OutOfRange({.where = kWhere, .expected = "rows", .got = "a 0-dim tensor in a dict"});
  auto rows = tensor.slice(/*dim=*/0, share.begin, share.end);
  const auto missing = num_missing(rows.size(0), tensor.size(0), share);
  if (missing == 0) return rows;
  auto sizes = tensor.sizes().vec();
  sizes[0] = missing;
  return at::cat({rows, tensor.slice(/*dim=*/0, -1).expand(sizes)});
}

Value part_of(const Value& value, const Share& share) {
  if (value.is_sequence()) return items_of(value, share);
  if (value.is_tensor()) return rows_of(value.tensor(), share);
  if (!value.is_dict()) return value;
  return map_children(value, [&](const Value& child, std::size_t) { return part_of(child, share); });
}

}  // namespace

Value split_between(const Value& value, World world, bool apply_padding) {
  checked(world, kWhere);
  if (world.size == 1) return value;
  const auto length = value.is_dict() ? common_length(value) : length_of(value);
  return part_of(value, share_of(length, world, apply_padding));
}

}  // namespace lockstep::value
