#include "lockstep/conformance/serve/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/value/json.h"

namespace lockstep::conformance {
namespace {

constexpr std::size_t kMaxShown = 80;  // characters of a field in a message

bool is_float(const Json& json) {
  return json.is_number() || json == "NaN" || json == "Infinity" || json == "-Infinity";
}

}  // namespace

Value value_from(const Json& json, const std::string& place) try {
  return value::from_json(json);
} catch (const Error& error) {
  throw Unsupported(place + ": " + error.what());
}

Arguments::Arguments(Json object, std::string place) : object_(std::move(object)), place_(std::move(place)) {
  if (!object_.is_object()) throw Unsupported(place_ + ": expected an object");
}

const Json* Arguments::find(const std::string& name) {
  known_.insert(name);
  const auto field = object_.find(name);
  return field == object_.end() || field->is_null() ? nullptr : &*field;
}

void Arguments::refuse(const std::string& name, const std::string& expected) const {
  const auto field = object_.find(name);
  const auto got = field == object_.end() ? "nothing" : field->dump().substr(0, kMaxShown);
  throw Unsupported(fmt::format("{}.{}: expected {}, got {}", place_, name, expected, got));
}

void Arguments::finish() const {
  std::vector<std::string> unknown;
  for (const auto& [name, field] : object_.items()) {
    if (!known_.contains(name)) unknown.push_back(name);
  }
  if (!unknown.empty()) throw Unsupported(fmt::format("{}: unknown {}", place_, fmt::join(unknown, ", ")));
}

void Arguments::require_names_of_numbers() const {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  for (const auto& [name, field] : object_.items()) {
    if (name.empty() || !std::ranges::all_of(name, is_digit)) refuse(name, "a number as its name");
  }
}

template <typename T>
T Arguments::required(const std::string& name, std::optional<T> found, std::optional<T> otherwise) const {
  if (found) return *std::move(found);
  if (!otherwise || has(name)) refuse(name, "a value");
  return *std::move(otherwise);
}

std::int64_t Arguments::integer(const std::string& name, std::optional<std::int64_t> otherwise) {
  return required(name, optional_integer(name), otherwise);
}

std::int64_t Arguments::length(const std::string& name) {
  const auto found = integer(name);
  if (found < 0) refuse(name, "0 or more");
  return found;
}

std::int64_t Arguments::positive(const std::string& name) {
  const auto found = integer(name);
  if (found < 1) refuse(name, "1 or more");
  return found;
}

int Arguments::small_integer(const std::string& name, int otherwise) {
  return required(name, optional_small_integer(name), std::optional(otherwise));
}

double Arguments::number(const std::string& name, std::optional<double> otherwise) {
  return required(name, optional_number(name), otherwise);
}

bool Arguments::flag(const std::string& name, bool otherwise) {
  return required(name, optional_flag(name), std::optional(otherwise));
}

std::string Arguments::word(const std::string& name, std::optional<std::string> otherwise) {
  return required(name, optional_word(name), std::move(otherwise));
}

std::optional<std::int64_t> Arguments::optional_integer(const std::string& name,
                                                        std::optional<std::int64_t> otherwise) {
  if (!has(name)) return known_.insert(name), otherwise;
  const auto* field = find(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_number_integer()) refuse(name, "an integer");
  return field->get<std::int64_t>();
}

std::optional<int> Arguments::optional_small_integer(const std::string& name) {
  const auto number = optional_integer(name);
  if (!number) return std::nullopt;
  if (!std::in_range<int>(*number)) refuse(name, "an integer of 32 bits");
  return static_cast<int>(*number);
}

std::optional<double> Arguments::optional_number(const std::string& name) {
  const auto* field = find(name);
  if (field == nullptr) return std::nullopt;
  if (!is_float(*field)) refuse(name, "a number");
  const auto number = value_from(*field, name);
  return number.number();
}

std::optional<bool> Arguments::optional_flag(const std::string& name) {
  const auto* field = find(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_boolean()) refuse(name, "true or false");
  return field->get<bool>();
}

std::optional<std::string> Arguments::optional_word(const std::string& name) {
  const auto* field = find(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_string()) refuse(name, "a string");
  return field->get<std::string>();
}

std::vector<std::int64_t> Arguments::integers(const std::string& name) {
  const auto* field = find(name);
  const auto is_integer = [](const Json& item) { return item.is_number_integer(); };
  if (field == nullptr || !field->is_array() || !std::ranges::all_of(*field, is_integer)) {
    refuse(name, "a list of integers");
  }
  return field->get<std::vector<std::int64_t>>();
}

std::vector<std::string> Arguments::words(const std::string& name) {
  const auto* field = find(name);
  const auto is_word = [](const Json& item) { return item.is_string(); };
  if (field == nullptr || !field->is_array() || !std::ranges::all_of(*field, is_word)) {
    refuse(name, "a list of strings");
  }
  return field->get<std::vector<std::string>>();
}

Json Arguments::json(const std::string& name) {
  const auto* field = find(name);
  return field == nullptr ? Json() : *field;
}

Value Arguments::value(const std::string& name) { return value_from(json(name), place_ + "." + name); }

Arguments Arguments::object(const std::string& name) {
  const auto* field = find(name);
  return {field == nullptr ? Json::object() : *field, place_ + "." + name};
}

std::vector<Arguments> Arguments::objects(const std::string& name) {
  std::vector<Arguments> all;
  const auto* field = find(name);
  if (field == nullptr) return all;
  if (!field->is_array()) refuse(name, "a list of objects");
  for (const auto& one : *field) all.emplace_back(one, fmt::format("{}.{}[{}]", place_, name, all.size()));
  return all;
}

std::vector<std::pair<std::string, Arguments>> Arguments::named_objects(const std::string& name) {
  std::vector<std::pair<std::string, Arguments>> all;
  const auto* field = find(name);
  if (field == nullptr) return all;
  if (!field->is_object()) refuse(name, "an object of objects");
  for (const auto& [key, one] : field->items()) {
    all.emplace_back(key, Arguments(one, fmt::format("{}.{}.{}", place_, name, key)));
  }
  return all;
}

}  // namespace lockstep::conformance
