#include "lockstep/value/json_tensor.h"

#include <ATen/ops/empty.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/value/base64.h"
#include "lockstep/value/dtype.h"

namespace lockstep::value {

namespace {

using Json = nlohmann::ordered_json;
static_assert(std::endian::native == std::endian::little, "the bytes of a tensor are written as they lie in memory");

constexpr std::int64_t kMaxPlainElements = 4096;

[[noreturn]] void throw_malformed(const std::string& expected, const Json& got) {
  throw InvalidArgument({.where = "from_json", .expected = expected, .got = excerpt(got)});
}

/// Smallest and largest value of an integer dtype.
struct Bounds {
  std::int64_t least;
  std::int64_t greatest;
};

template <typename Integer>
constexpr Bounds bounds_of() {
  return {std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max()};
}

Bounds bounds(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte: return bounds_of<std::uint8_t>();
    case at::kChar: return bounds_of<std::int8_t>();
    case at::kShort: return bounds_of<std::int16_t>();
    case at::kInt: return bounds_of<std::int32_t>();
    default: return bounds_of<std::int64_t>();
  }
}

void check_in_protocol(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
    case at::kFloat:
    case at::kHalf:
    case at::kBFloat16:
    case at::kFloat8_e4m3fn:
    case at::kFloat8_e5m2:
    case at::kLong:
    case at::kInt:
    case at::kShort:
    case at::kChar:
    case at::kByte:
    case at::kBool: return;
    default:
      throw NotSupported({.where = "tensor in JSON",
                          .expected = "a dtype of the protocol",
                          .got = std::string(dtype_name(dtype)),
                          .fix = "Convert the tensor, or send it as bytes."});
  }
}

/// The dtype in which elements are handled one by one: double, int64 or bool.
at::ScalarType element_dtype(at::ScalarType dtype) {
  if (dtype == at::kBool) return at::kBool;
  return at::isFloatingType(dtype) ? at::kDouble : at::kLong;
}

std::span<const std::uint8_t> raw_bytes(const at::Tensor& contiguous) {
  return {static_cast<const std::uint8_t*>(contiguous.const_data_ptr()), contiguous.nbytes()};
}

template <typename Element>
Json elements_to_json(const at::Tensor& plain) {
  auto data = Json::array();
  const auto* elements = plain.const_data_ptr<Element>();
  for (std::int64_t i = 0; i < plain.numel(); ++i) {
    if constexpr (std::is_same_v<Element, double>) {
      data.push_back(float_to_json(elements[i]));
    } else {
      data.push_back(elements[i]);
    }
  }
  return data;
}

Json data_to_json(const at::Tensor& contiguous) {
  const auto plain = contiguous.to(element_dtype(contiguous.scalar_type()));
  switch (plain.scalar_type()) {
    case at::kBool: return elements_to_json<bool>(plain);
    case at::kLong: return elements_to_json<std::int64_t>(plain);
    default: return elements_to_json<double>(plain);
  }
}

void read_element(const Json& json, at::ScalarType /*dtype*/, double& element) { element = float_from_json(json); }

void read_element(const Json& json, at::ScalarType /*dtype*/, bool& element) {
  if (!json.is_boolean()) throw_malformed("true or false as element of a bool tensor", json);
  element = json.get<bool>();
}

void read_element(const Json& json, at::ScalarType dtype, std::int64_t& element) {
  const auto [least, greatest] = bounds(dtype);
  const bool fits = json.is_number_integer() &&
                    (!json.is_number_unsigned() || std::in_range<std::int64_t>(json.get<std::uint64_t>()));
  element = fits ? json.get<std::int64_t>() : 0;
  if (!fits || element < least || element > greatest) {
    throw_malformed("an integer that fits " + std::string(dtype_name(dtype)), json);
  }
}

template <typename Element>
at::Tensor elements_from_json(const Json& data, at::ScalarType dtype, at::IntArrayRef shape) {
  auto plain = at::empty(shape, element_dtype(dtype));
  auto* elements = plain.mutable_data_ptr<Element>();
  for (const auto& json : data) read_element(json, dtype, *elements++);
  return plain.to(dtype);
}

at::Tensor data_from_json(const Json& data, at::ScalarType dtype, at::IntArrayRef shape) {
  switch (element_dtype(dtype)) {
    case at::kBool: return elements_from_json<bool>(data, dtype, shape);
    case at::kLong: return elements_from_json<std::int64_t>(data, dtype, shape);
    default: return elements_from_json<double>(data, dtype, shape);
  }
}

/// Bytes of bools are made 0 or 1: any other is undefined behaviour to read.
at::Tensor bytes_from_json(const Json& text, at::ScalarType dtype, at::IntArrayRef shape) {
  const auto bytes = text.is_string() ? from_base64(text.get_ref<const std::string&>()) : std::nullopt;
  auto tensor = at::empty(shape, dtype == at::kBool ? at::kByte : dtype);
  if (!bytes || bytes->size() != tensor.nbytes()) {
    throw_malformed(std::to_string(tensor.nbytes()) + " bytes of base64 for a tensor of that shape", text);
  }
  if (!bytes->empty()) std::memcpy(tensor.mutable_data_ptr(), bytes->data(), bytes->size());
  return dtype == at::kBool ? tensor.ne(0) : tensor;
}

std::vector<std::int64_t> shape_from_json(const Json& json) {
  if (!json.is_array()) throw_malformed("a list of sizes as shape", json);
  std::vector<std::int64_t> shape;
  std::int64_t numel = 1;
  for (const auto& size : json) {
    read_element(size, at::kLong, shape.emplace_back());
    if (shape.back() < 0 || __builtin_mul_overflow(numel, shape.back(), &numel)) {
      throw_malformed("sizes of a tensor that fits into memory", json);
    }
  }
  return shape;
}

std::int64_t numel_of(const std::vector<std::int64_t>& shape) { return c10::multiply_integers(shape); }

}  // namespace

std::string excerpt(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 80);
}

bool is_float_word(const std::string& text) { return text == "NaN" || text == "Infinity" || text == "-Infinity"; }

Json float_to_json(double number) {
  if (std::isfinite(number)) return number;
  if (std::isnan(number)) return "NaN";
  return number > 0 ? "Infinity" : "-Infinity";
}

double float_from_json(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (!json.is_string() || !is_float_word(json.get_ref<const std::string&>())) {
    throw_malformed("a number, \"NaN\", \"Infinity\" or \"-Infinity\"", json);
  }
  const auto& word = json.get_ref<const std::string&>();
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return word == "Infinity" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

Json tensor_to_json(const at::Tensor& tensor) {
  check_in_protocol(tensor.scalar_type());
  const auto contiguous = tensor.detach().cpu().contiguous();
  Json json = {{"t", dtype_name(tensor.scalar_type())}, {"shape", tensor.sizes().vec()}};
  if (tensor.numel() > kMaxPlainElements) {
    json["b64"] = to_base64(raw_bytes(contiguous));
  } else {
    json["data"] = data_to_json(contiguous);
  }
  return json;
}

at::Tensor tensor_from_json(const Json& json) {
  const bool is_plain = json.contains("data");
  if (json.size() != 3 || !json.contains("shape") || (!is_plain && !json.contains("b64")) || !json["t"].is_string()) {
    throw_malformed("{\"t\": dtype, \"shape\": [..], \"data\": [..] or \"b64\": text}", json);
  }
  const auto dtype = dtype_from_name(json["t"].get_ref<const std::string&>());
  check_in_protocol(dtype);
  const auto shape = shape_from_json(json["shape"]);
  if (!is_plain) return bytes_from_json(json["b64"], dtype, shape);
  const auto data = json["data"].is_array() ? json["data"] : Json::array({json["data"]});
  if (static_cast<std::int64_t>(data.size()) != numel_of(shape)) {
    throw_malformed("as many data as the shape has elements, " + std::to_string(numel_of(shape)), json);
  }
  return data_from_json(data, dtype, shape);
}

}  // namespace lockstep::value
