#include "lockstep/value/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/value/base64.h"
#include "lockstep/value/json_tensor.h"
#include "lockstep/value/traverse.h"

namespace lockstep::value {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kMarks = {"t", "tuple", "named", "b64", "set", "error", "map"};
constexpr const char* kStringMark = "string";  // a mark only around a word for a float

[[noreturn]] void throw_malformed(const std::string& path, const std::string& expected, const Json& got) {
  throw InvalidArgument({.where = "from_json, " + path_text(path),
                         .expected = expected,
                         .got = excerpt(got),
                         .fix = "A dict with such a key is written {\"map\": [[key, value], ..]}."});
}

bool has_mark(const Json& object) {
  return std::ranges::any_of(kMarks, [&](const char* mark) { return object.contains(mark); });
}

bool is_marked_string(const Json& object) {
  if (object.size() != 1 || !object.contains(kStringMark)) return false;
  const auto& text = object[kStringMark];
  return text.is_string() && is_float_word(text.get_ref<const std::string&>());
}

// Writing.

Json write(const Value& value, const std::string& path);

/// The text itself, which has to be UTF-8 to be JSON.
const std::string& checked_text(const std::string& text, const std::string& path) {
  try {
    (void)Json(text).dump();  // where the encoding is checked
  } catch (const Json::type_error&) {
    throw InvalidArgument({.where = "to_json, " + path_text(path),
                           .expected = "a string in UTF-8",
                           .got = "other bytes",
                           .fix = "Pass them as Value::Bytes."});
  }
  return text;
}

Json string_to_json(const std::string& text, const std::string& path) {
  if (is_float_word(text)) return {{kStringMark, text}};
  return checked_text(text, path);
}

Json children_to_json(const Value& sequence, const std::string& path) {
  auto items = Json::array();
  for (std::size_t position = 0; position < sequence.size(); ++position) {
    items.push_back(write(sequence.child(position), child_path(path, sequence, position)));
  }
  return items;
}

Json named_tuple_to_json(const Value& value, const std::string& path) {
  auto fields = Json::object();
  for (std::size_t position = 0; position < value.size(); ++position) {
    const auto& name = checked_text(value.fields()[position], path);
    fields[name] = write(value.child(position), child_path(path, value, position));
  }
  return {{"named", checked_text(value.named_tuple_name(), path)}, {"fields", std::move(fields)}};
}

/// {"string": NaN} would be read as the string "NaN".
bool looks_like_marked_string(const Value& dict) {
  const auto* value = dict.size() == 1 ? dict.find(kStringMark) : nullptr;
  return value != nullptr && value->is_real() && !std::isfinite(value->real());
}

/// Whether the dict, written as an object, is read as that dict.
bool is_plain(const Value& dict) {
  const auto is_plain_key = [](const Value::Entry& entry) {
    return entry.first.is_string() && std::ranges::find(kMarks, entry.first.string()) == kMarks.end();
  };
  return std::ranges::all_of(dict.entries(), is_plain_key) && !looks_like_marked_string(dict);
}

Json key_to_json(const Value::Key& key, const std::string& path) {
  if (key.is_string()) return checked_text(key.string(), path);
  return key.integer();
}

Json dict_to_json(const Value& dict, const std::string& path) {
  const bool plain = is_plain(dict);
  auto object = Json::object();
  auto pairs = Json::array();
  for (std::size_t position = 0; position < dict.size(); ++position) {
    auto key = key_to_json(dict.entries()[position].first, path);
    auto value = write(dict.child(position), child_path(path, dict, position));
    if (plain) {
      object[key.get_ref<const std::string&>()] = std::move(value);
    } else {
      pairs.push_back(Json::array({std::move(key), std::move(value)}));
    }
  }
  if (plain) return object;
  return {{"map", std::move(pairs)}};
}

Json write(const Value& value, const std::string& path) {
  switch (value.kind()) {
    case Value::Kind::none: return nullptr;
    case Value::Kind::boolean: return value.boolean();
    case Value::Kind::integer: return value.integer();
    case Value::Kind::real: return float_to_json(value.real());
    case Value::Kind::string: return string_to_json(value.string(), path);
    case Value::Kind::bytes: return {{"b64", to_base64(value.bytes())}};
    case Value::Kind::tensor: return tensor_to_json(value.tensor());
    case Value::Kind::list: return children_to_json(value, path);
    case Value::Kind::tuple: return {{"tuple", children_to_json(value, path)}};
    case Value::Kind::named_tuple: return named_tuple_to_json(value, path);
    case Value::Kind::dict: return dict_to_json(value, path);
    case Value::Kind::opaque: break;
  }
  throw TypeError({.where = "to_json, " + path_text(path),
                   .expected = "a value that can be written",
                   .got = value.type_name() + ", an opaque object"});
}

// Reading.

Value read(const Json& json, const std::string& path);

std::vector<Value> items_from_json(const Json& json, const std::string& path) {
  if (!json.is_array()) throw_malformed(path, "a list of items", json);
  std::vector<Value> items;
  for (const auto& item : json) items.push_back(read(item, path + "[" + std::to_string(items.size()) + "]"));
  return items;
}

Value named_tuple_from_json(const Json& json, const std::string& path) {
  if (json.size() != 2 || !json.contains("fields") || !json["fields"].is_object() || !json["named"].is_string()) {
    throw_malformed(path, "{\"named\": name, \"fields\": {..}}", json);
  }
  std::vector<Value::Field> fields;
  for (const auto& [name, field] : json["fields"].items()) fields.emplace_back(name, read(field, path + "." + name));
  return Value::named_tuple(json["named"].get<std::string>(), std::move(fields));
}

Value bytes_from_json(const Json& json, const std::string& path) {
  auto bytes = json.is_string() ? from_base64(json.get_ref<const std::string&>()) : std::nullopt;
  if (!bytes) throw_malformed(path, "base64 with padding", json);
  return std::move(*bytes);
}

Value::Key key_from_json(const Json& json, const std::string& path) {
  if (json.is_number_integer()) return read(json, path).integer();
  if (json.is_string()) return json.get<std::string>();
  throw_malformed(path, "a string or an integer as key", json);
}

Value map_from_json(const Json& json, const std::string& path) {
  if (!json.is_array()) throw_malformed(path, "a list of [key, value]", json);
  std::vector<Value::Entry> entries;
  for (const auto& pair : json) {
    if (!pair.is_array() || pair.size() != 2) throw_malformed(path, "[key, value]", pair);
    auto key = key_from_json(pair[0], path);
    const auto here = path + "[" + to_text(key) + "]";
    entries.emplace_back(std::move(key), read(pair[1], here));
  }
  return Value::dict(std::move(entries));
}

at::Tensor tensor_at(const Json& json, const std::string& path) try {
  return tensor_from_json(json);
} catch (const InvalidArgument& error) {
  throw InvalidArgument(path_text(path) + ": " + error.what());
}

/// The one member of an object like {"tuple": [..]}.
const Json& only_member(const Json& object, const char* mark, const std::string& path) {
  if (object.size() != 1) throw_malformed(path, std::string("nothing beside the key ") + mark, object);
  return object[mark];
}

Value marked_from_json(const Json& json, const std::string& path) {
  if (json.contains("t")) return tensor_at(json, path);
  if (json.contains("named")) return named_tuple_from_json(json, path);
  if (json.contains("tuple")) return Value::tuple(items_from_json(only_member(json, "tuple", path), path));
  if (json.contains("b64")) return bytes_from_json(only_member(json, "b64", path), path);
  if (json.contains("map")) return map_from_json(only_member(json, "map", path), path);
  if (json.contains("error")) throw_malformed(path, "a value", json);
  throw NotSupported({.where = "from_json, " + path_text(path), .expected = "a kind of Value", .got = "a set"});
}

Value object_from_json(const Json& json, const std::string& path) {
  if (has_mark(json)) return marked_from_json(json, path);
  if (is_marked_string(json)) return json[kStringMark].get<std::string>();
  std::vector<Value::Entry> entries;
  for (const auto& [key, value] : json.items()) {
    entries.emplace_back(key, read(value, path.empty() ? key : path + "." + key));
  }
  return Value::dict(std::move(entries));
}

Value string_from_json(const Json& json) {
  const auto& text = json.get_ref<const std::string&>();
  if (is_float_word(text)) return float_from_json(json);
  return text;
}

Value read(const Json& json, const std::string& path) {
  switch (json.type()) {
    case Json::value_t::null: return {};
    case Json::value_t::boolean: return json.get<bool>();
    case Json::value_t::number_integer: return json.get<std::int64_t>();
    case Json::value_t::number_unsigned: return json.get<std::uint64_t>();
    case Json::value_t::number_float: return json.get<double>();
    case Json::value_t::string: return string_from_json(json);
    case Json::value_t::array: return Value::list(items_from_json(json, path));
    case Json::value_t::object: return object_from_json(json, path);
    default: throw_malformed(path, "a value", json);
  }
}

}  // namespace

Json to_json(const Value& value) { return write(value, ""); }

Value from_json(const Json& json) { return read(json, ""); }

}  // namespace lockstep::value
