#include "lockstep/value/dtype.h"

#include <array>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::value {

namespace {

using Row = std::pair<at::ScalarType, std::string_view>;

constexpr std::array kNames = {
    Row{at::kDouble, "float64"},
    Row{at::kFloat, "float32"},
    Row{at::kHalf, "float16"},
    Row{at::kBFloat16, "bfloat16"},
    Row{at::kFloat8_e4m3fn, "float8_e4m3fn"},
    Row{at::kFloat8_e5m2, "float8_e5m2"},
    Row{at::kFloat8_e4m3fnuz, "float8_e4m3fnuz"},
    Row{at::kFloat8_e5m2fnuz, "float8_e5m2fnuz"},
    Row{at::kLong, "int64"},
    Row{at::kInt, "int32"},
    Row{at::kShort, "int16"},
    Row{at::kChar, "int8"},
    Row{at::kByte, "uint8"},
    Row{at::kUInt16, "uint16"},
    Row{at::kUInt32, "uint32"},
    Row{at::kUInt64, "uint64"},
    Row{at::kBool, "bool"},
    Row{at::kComplexFloat, "complex64"},
    Row{at::kComplexDouble, "complex128"},
};

std::string all_names() {
  std::string names;
  for (const auto& row : kNames) (names += names.empty() ? "" : ", ") += row.second;
  return names;
}

}  // namespace

std::string_view dtype_name(at::ScalarType dtype) {
  for (const auto& row : kNames) {
    if (row.first == dtype) return row.second;
  }
  throw NotSupported({.where = "dtype_name", .expected = "one of " + all_names(), .got = c10::toString(dtype)});
}

at::ScalarType dtype_from_name(std::string_view name) {
  for (const auto& row : kNames) {
    if (row.second == name) return row.first;
  }
  throw InvalidArgument(
      {.where = "dtype_from_name", .expected = "one of " + all_names(), .got = "\"" + std::string(name) + "\""});
}

}  // namespace lockstep::value
