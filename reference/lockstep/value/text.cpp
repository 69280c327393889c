// How a Value reads in messages and test output.
#include <cmath>
#include <ostream>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/value/dtype.h"
#include "lockstep/value/value.h"

namespace lockstep {

namespace {

constexpr std::size_t kShownChildren = 16;
constexpr std::int64_t kShownElements = 8;

std::string quoted(const std::string& text) { return '"' + text + '"'; }

std::string number_text(double number) {
  std::ostringstream out;
  out.precision(17);
  out << number;
  auto text = out.str();
  const bool looks_like_integer = std::isfinite(number) && text.find_first_of(".e") == std::string::npos;
  return looks_like_integer ? text + ".0" : text;
}

std::string element_text(const at::Tensor& element) {
  if (element.is_floating_point()) return number_text(element.to(at::kDouble).item<double>());
  return std::to_string(element.item<std::int64_t>());
}

/// The dtype's name; LibTorch's own for those that we have none for, as a message must not fail.
std::string dtype_text(at::ScalarType dtype) try {
  return std::string(value::dtype_name(dtype));
} catch (const NotSupported&) {
  return c10::toString(dtype);
}

/// `tensor<float32>[2, 3]`, and the elements of a small one: `tensor<int64>[2]{3, 4}`.
std::string tensor_text(const at::Tensor& tensor) {
  std::string text = "tensor<" + dtype_text(tensor.scalar_type()) + ">[";
  for (std::int64_t dim = 0; dim < tensor.dim(); ++dim) {
    text += (dim == 0 ? "" : ", ") + std::to_string(tensor.size(dim));
  }
  text += "]";
  const bool has_plain_numbers = tensor.is_cpu() && tensor.layout() == at::kStrided && !tensor.is_complex();
  if (!has_plain_numbers || tensor.numel() > kShownElements) return text;
  const auto flat = tensor.detach().flatten();
  text += "{";
  for (std::int64_t i = 0; i < flat.numel(); ++i) text += (i == 0 ? "" : ", ") + element_text(flat[i]);
  return text + "}";
}

std::string child_text(const Value& value, std::size_t position) {
  const auto child = to_text(value.child(position));
  if (value.is_dict()) return to_text(value.entries()[position].first) + ": " + child;
  if (value.is_named_tuple()) return value.fields()[position] + "=" + child;
  return child;
}

std::string container_text(const Value& value, const std::string& open, const std::string& close) {
  std::string text = open;
  for (std::size_t position = 0; position < value.size(); ++position) {
    if (position > 0) text += ", ";
    if (position == kShownChildren) return text + "... (" + std::to_string(value.size()) + " in all)" + close;
    text += child_text(value, position);
  }
  return text + close;
}

}  // namespace

std::string to_text(const Value::Key& key) {
  return key.is_string() ? quoted(key.string()) : std::to_string(key.integer());
}

std::string to_text(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none: return "none";
    case Value::Kind::boolean: return value.boolean() ? "true" : "false";
    case Value::Kind::integer: return std::to_string(value.integer());
    case Value::Kind::real: return number_text(value.real());
    case Value::Kind::string: return quoted(value.string());
    case Value::Kind::bytes: return "bytes[" + std::to_string(value.bytes().size()) + "]";
    case Value::Kind::tensor: return tensor_text(value.tensor());
    case Value::Kind::list: return container_text(value, "[", "]");
    case Value::Kind::tuple: return container_text(value, "(", value.size() == 1 ? ",)" : ")");
    case Value::Kind::named_tuple: return container_text(value, value.named_tuple_name() + "(", ")");
    case Value::Kind::dict: return container_text(value, "{", "}");
    case Value::Kind::opaque: return "<" + value.type_name() + ">";
  }
  return "";
}

std::ostream& operator<<(std::ostream& out, const Value& value) { return out << to_text(value); }

}  // namespace lockstep
