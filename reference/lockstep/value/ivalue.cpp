#include "lockstep/value/ivalue.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <array>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/value/dtype.h"
#include "lockstep/value/traverse.h"

namespace lockstep::value {

namespace {

using c10::IValue;

const std::string kMark = "lockstep::Value";

// Writing.

IValue write(const Value& value, const std::string& path);

IValue marked(const char* what, std::vector<IValue> parts) {
  parts.insert(parts.begin(), {IValue(kMark), IValue(std::string(what))});
  return c10::ivalue::Tuple::create(std::move(parts));
}

std::vector<IValue> children_of(const Value& value, const std::string& path) {
  std::vector<IValue> children;
  for (std::size_t position = 0; position < value.size(); ++position) {
    children.push_back(write(value.child(position), child_path(path, value, position)));
  }
  return children;
}

IValue any_list(std::vector<IValue> items) {
  c10::impl::GenericList list(c10::AnyType::get());
  list.reserve(items.size());
  for (auto& item : items) list.push_back(std::move(item));
  return list;
}

IValue tuple_ivalue(const Value& value, const std::string& path) {
  const bool looks_marked = value.size() > 0 && value[0].is_string() && value[0].string() == kMark;
  auto items = children_of(value, path);
  if (looks_marked) return marked("tuple", {any_list(std::move(items))});
  return c10::ivalue::Tuple::create(std::move(items));
}

IValue named_tuple_ivalue(const Value& value, const std::string& path) {
  std::vector<IValue> fields(value.fields().begin(), value.fields().end());
  return marked("named", {value.named_tuple_name(), any_list(std::move(fields)), any_list(children_of(value, path))});
}

IValue dict_ivalue(const Value& value, const std::string& path) {
  c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
  for (std::size_t position = 0; position < value.size(); ++position) {
    const auto& key = value.entries()[position].first;
    dict.insert(key.is_string() ? IValue(key.string()) : IValue(key.integer()),
                write(value.child(position), child_path(path, value, position)));
  }
  return dict;
}

IValue write(const Value& value, const std::string& path) {
  switch (value.kind()) {
    case Value::Kind::none: return {};
    case Value::Kind::boolean: return value.boolean();
    case Value::Kind::integer: return value.integer();
    case Value::Kind::real: return value.real();
    case Value::Kind::string: return value.string();
    case Value::Kind::bytes: return marked("bytes", {std::string(value.bytes().begin(), value.bytes().end())});
    case Value::Kind::tensor: return value.tensor();
    case Value::Kind::list: return any_list(children_of(value, path));
    case Value::Kind::tuple: return tuple_ivalue(value, path);
    case Value::Kind::named_tuple: return named_tuple_ivalue(value, path);
    case Value::Kind::dict: return dict_ivalue(value, path);
    case Value::Kind::opaque: break;
  }
  throw TypeError({.where = "to_ivalue, " + path_text(path),
                   .expected = "a value that can be sent",
                   .got = value.type_name() + ", an opaque object"});
}

// Reading.

std::vector<Value> items_of(c10::ArrayRef<IValue> ivalues) {
  std::vector<Value> items;
  for (const auto& ivalue : ivalues) items.push_back(from_ivalue(ivalue));
  return items;
}

std::vector<Value> items_of(const c10::List<IValue>& list) {
  std::vector<Value> items;
  for (std::size_t i = 0; i < list.size(); ++i) items.push_back(from_ivalue(list.get(i)));
  return items;
}

Value named_tuple_of(const std::string& name, const std::vector<std::string>& names, std::vector<Value> items) {
  std::vector<Value::Field> fields;
  for (std::size_t i = 0; i < items.size(); ++i) fields.emplace_back(names.at(i), std::move(items[i]));
  return Value::named_tuple(name, std::move(fields));
}

std::vector<std::string> strings_of(const c10::List<IValue>& list) {
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < list.size(); ++i) strings.push_back(list.get(i).toStringRef());
  return strings;
}

/// @param parts  (mark, what, ...) as `marked` made it
Value marked_from_ivalue(c10::ArrayRef<IValue> parts) {
  const auto& what = parts.at(1).toStringRef();
  if (what == "tuple") return Value::tuple(items_of(parts.at(2).toList()));
  if (what == "named") {
    return named_tuple_of(parts.at(2).toStringRef(), strings_of(parts.at(3).toList()), items_of(parts.at(4).toList()));
  }
  const auto& text = parts.at(2).toStringRef();
  return Value::Bytes(text.begin(), text.end());
}

Value tuple_from_ivalue(const c10::ivalue::Tuple& tuple) {
  const auto& elements = tuple.elements();
  const c10::ArrayRef<IValue> parts(elements.begin(), elements.size());
  if (!parts.empty() && parts[0].isString() && parts[0].toStringRef() == kMark) return marked_from_ivalue(parts);
  const auto type = tuple.type<c10::TupleType>();
  if (type->schema() == nullptr || !type->name()) return Value::tuple(items_of(parts));
  std::vector<std::string> names;
  for (const auto& argument : type->schema()->arguments()) names.push_back(argument.name());
  return named_tuple_of(type->name()->name(), names, items_of(parts));
}

Value::Key key_from_ivalue(const IValue& ivalue) {
  if (ivalue.isString()) return ivalue.toStringRef();
  if (ivalue.isInt()) return ivalue.toInt();
  throw TypeError({.where = "from_ivalue", .expected = "a string or an int as key", .got = ivalue.tagKind()});
}

Value dict_from_ivalue(const c10::Dict<IValue, IValue>& dict) {
  std::vector<Value::Entry> entries;
  for (const auto& entry : dict) entries.emplace_back(key_from_ivalue(entry.key()), from_ivalue(entry.value()));
  return Value::dict(std::move(entries));
}

}  // namespace

IValue to_ivalue(const Value& value) { return write(value, ""); }

Value from_ivalue(const IValue& ivalue) {
  if (ivalue.isNone()) return {};
  if (ivalue.isBool()) return ivalue.toBool();
  if (ivalue.isInt()) return ivalue.toInt();
  if (ivalue.isDouble()) return ivalue.toDouble();
  if (ivalue.isString()) return ivalue.toStringRef();
  if (ivalue.isTensor()) return ivalue.toTensor();
  if (ivalue.isList()) return Value::list(items_of(ivalue.toList()));
  if (ivalue.isTuple()) return tuple_from_ivalue(ivalue.toTupleRef());
  if (ivalue.isGenericDict()) return dict_from_ivalue(ivalue.toGenericDict());
  throw TypeError({.where = "from_ivalue", .expected = "a kind of Value", .got = ivalue.tagKind()});
}

namespace {

/// A tensor as it is written: the pickler writes a whole storage, so a view of a large one is copied out first.
at::Tensor packed(const at::Tensor& tensor) {
  auto plain = tensor.detach().cpu().contiguous();
  return plain.storage().nbytes() == plain.nbytes() ? plain : plain.clone();
}

}  // namespace

std::vector<char> to_bytes(const Value& value) {
  return torch::jit::pickle_save(to_ivalue(map_tensors(value, packed)));
}

Value from_bytes(const std::vector<char>& bytes) {
  try {
    return from_ivalue(torch::jit::pickle_load(bytes));
  } catch (const std::exception& error) {
    throw InvalidArgument({.where = "from_bytes",
                           .expected = "bytes that to_bytes made",
                           .got = std::to_string(bytes.size()) + " others (" + brief(error) + ")"});
  }
}

}  // namespace lockstep::value
