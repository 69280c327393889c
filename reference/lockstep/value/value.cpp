#include "lockstep/value/value.h"

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/error.h"

namespace lockstep {

namespace {

template <typename Range, typename Name>
std::string joined(const Range& range, const Name& name) {
  constexpr std::size_t kShown = 8;
  std::string text;
  std::size_t count = 0;
  for (const auto& item : range) {
    if (count == kShown) return text + ", ... (" + std::to_string(range.size()) + " in all)";
    text += (count++ == 0 ? "" : ", ") + name(item);
  }
  return text.empty() ? "nothing, it is empty" : text;
}

std::string key_names(const std::vector<Value::Entry>& entries) {
  return joined(entries, [](const Value::Entry& entry) { return to_text(entry.first); });
}

}  // namespace

const std::string& Value::Key::string() const {
  if (const auto* name = std::get_if<std::string>(&key_)) return *name;
  throw TypeError({.where = "Key::string", .expected = "a string key", .got = "the integer " + to_text(*this)});
}

std::int64_t Value::Key::integer() const {
  if (const auto* number = std::get_if<std::int64_t>(&key_)) return *number;
  throw TypeError({.where = "Key::integer", .expected = "an integer key", .got = "the string " + to_text(*this)});
}

Value::Value(at::Tensor tensor) {
  if (tensor.defined()) data_ = std::move(tensor);
}

Value Value::named_tuple(std::string name, std::vector<Field> fields) {
  NamedTuple made{.name = std::move(name)};
  for (auto& [field, item] : fields) {
    if (std::ranges::find(made.fields, field) != made.fields.end()) {
      throw InvalidArgument(
          {.where = "Value::named_tuple(" + made.name + ")", .expected = "distinct fields", .got = field + " twice"});
    }
    made.fields.push_back(std::move(field));
    made.items.push_back(std::move(item));
  }
  return of(std::move(made));
}

Value Value::dict(std::vector<Entry> entries) {
  Dict made;
  made.entries.reserve(entries.size());
  std::map<Key, std::size_t> places;
  for (auto& entry : entries) {
    const auto [place, is_new] = places.emplace(entry.first, made.entries.size());
    if (is_new) {
      made.entries.push_back(std::move(entry));
    } else {
      made.entries[place->second].second = std::move(entry.second);
    }
  }
  return of(std::move(made));
}

std::string Value::type_name() const {
  switch (kind()) {
    case Kind::none: return "none";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::real: return "float";
    case Kind::string: return "string";
    case Kind::bytes: return "bytes";
    case Kind::tensor: return "tensor";
    case Kind::list: return "list";
    case Kind::tuple: return "tuple";
    case Kind::named_tuple: return "named tuple " + std::get<NamedTuple>(data_).name;
    case Kind::dict: return "dict";
    case Kind::opaque: return std::get<Opaque>(data_).type_name;
  }
  return "";
}

void Value::wrong_kind(const char* accessor, const std::string& expected) const {
  throw TypeError({.where = std::string("Value::") + accessor, .expected = expected, .got = type_name()});
}

void Value::integer_too_large() {
  throw InvalidArgument({.where = "Value", .expected = "an integer of 64 bits with sign", .got = "a larger one"});
}

template <typename T>
const T& Value::get(const char* accessor, const char* expected) const {
  if (const auto* held = std::get_if<T>(&data_)) return *held;
  wrong_kind(accessor, expected);
}

bool Value::boolean() const { return get<bool>("boolean", "bool"); }
std::int64_t Value::integer() const { return get<std::int64_t>("integer", "int"); }
double Value::real() const { return get<double>("real", "float"); }
double Value::number() const {
  return is_integer() ? static_cast<double>(integer()) : get<double>("number", "int or float");
}
const std::string& Value::string() const { return get<std::string>("string", "string"); }
const Value::Bytes& Value::bytes() const { return get<Bytes>("bytes", "bytes"); }
const at::Tensor& Value::tensor() const { return get<at::Tensor>("tensor", "tensor"); }

std::shared_ptr<const void> Value::object_of(std::type_index type) const {
  const auto& opaque = get<Opaque>("object", "an opaque object");
  if (opaque.type != type) wrong_kind("object", "an object of the type asked for");
  return opaque.object;
}

std::size_t Value::size() const {
  if (!is_container()) wrong_kind("size", "a container");
  return is_dict() ? entries().size() : items().size();
}

const std::vector<Value>& Value::items() const {
  if (const auto* list = std::get_if<List>(&data_)) return list->items;
  if (const auto* tuple = std::get_if<Tuple>(&data_)) return tuple->items;
  return get<NamedTuple>("items", "list, tuple or named tuple").items;
}

const std::vector<Value::Entry>& Value::entries() const { return get<Dict>("entries", "dict").entries; }
const std::vector<std::string>& Value::fields() const { return get<NamedTuple>("fields", "named tuple").fields; }
const std::string& Value::named_tuple_name() const { return get<NamedTuple>("named_tuple_name", "named tuple").name; }

const Value* Value::find(const Key& key) const {
  for (const auto& entry : get<Dict>("find", "dict").entries) {
    if (entry.first == key) return &entry.second;
  }
  return nullptr;
}

const Value& Value::operator[](std::string_view name) const {
  if (const auto* tuple = std::get_if<NamedTuple>(&data_)) {
    const auto field = std::ranges::find(tuple->fields, name);
    if (field != tuple->fields.end()) return tuple->items[static_cast<std::size_t>(field - tuple->fields.begin())];
    const auto names = joined(tuple->fields, [](const std::string& known) { return known; });
    throw KeyError({.where = type_name(), .expected = "one of " + names, .got = std::string(name)});
  }
  if (!is_dict()) wrong_kind("operator[](name)", "dict or named tuple");
  if (const auto* value = find(name)) return *value;
  throw KeyError({.where = "dict", .expected = "one of " + key_names(entries()), .got = to_text(Key(name))});
}

const Value& Value::element(std::int64_t index) const {
  if (is_dict()) {
    if (const auto* value = find(index)) return *value;
    throw KeyError({.where = "dict", .expected = "one of " + key_names(entries()), .got = std::to_string(index)});
  }
  if (!is_sequence()) wrong_kind("operator[](index)", "list, tuple, named tuple or dict");
  if (index < 0 || static_cast<std::size_t>(index) >= size()) {
    throw OutOfRange({.where = type_name(),
                      .expected = "an index from 0 and below " + std::to_string(size()),
                      .got = std::to_string(index)});
  }
  return items()[static_cast<std::size_t>(index)];
}

void Value::append(Value item) {
  auto* list = std::get_if<List>(&data_);
  if (list == nullptr) wrong_kind("append", "list");
  list->items.push_back(std::move(item));
}

void Value::set(Key key, Value value) {
  auto* dict = std::get_if<Dict>(&data_);
  if (dict == nullptr) wrong_kind("set", "dict");
  const auto known = std::ranges::find(dict->entries, key, &Entry::first);
  if (known != dict->entries.end()) {
    known->second = std::move(value);
  } else {
    dict->entries.emplace_back(std::move(key), std::move(value));
  }
}

const Value& Value::child(std::size_t position) const {
  LOCKSTEP_ASSERT(position < size());
  return is_dict() ? entries()[position].second : items()[position];
}

Value Value::with_children(std::vector<Value> children) const {
  LOCKSTEP_ASSERT(children.size() == size());
  switch (kind()) {
    case Kind::list: return list(std::move(children));
    case Kind::tuple: return tuple(std::move(children));
    case Kind::named_tuple:
      return of(NamedTuple{.name = named_tuple_name(), .fields = fields(), .items = std::move(children)});
    default: break;
  }
  Dict dict;
  for (std::size_t position = 0; position < children.size(); ++position) {
    dict.entries.emplace_back(entries()[position].first, std::move(children[position]));
  }
  return of(std::move(dict));
}

}  // namespace lockstep
