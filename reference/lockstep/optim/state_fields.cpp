#include "lockstep/optim/state_fields.h"

#include <fmt/format.h>

#include "lockstep/base/error.h"

namespace lockstep::optim {

template <typename Field, typename ToValue, typename FromValue>
void StateFields::transfer(const char* name, Field& field, ToValue to_value, FromValue from_value) {
  if (!is_reading()) return write(name, to_value(field));
  const auto* found = read(name);
  if (found == nullptr) return;
  try {
    field = from_value(*found);
  } catch (const TypeError& error) {
    throw TypeError({.where = fmt::format("load_state_dict('{}')", name), .got = error.what()});
  }
}

namespace {

// A list keeps its length: there is an entry for each parameter group, or for each schedule.
template <typename Element, typename FromValue>
std::vector<Element> elements_of(const char* name, std::size_t length, const Value& list, FromValue from_value) {
  if (list.items().size() != length) {
    throw InvalidArgument({.where = fmt::format("load_state_dict('{}')", name),
                           .expected = fmt::format("{} numbers, as this schedule has", length),
                           .got = fmt::format("{}", list.items().size()),
                           .fix = "Load the state into a schedule that was made as the saved one."});
  }
  std::vector<Element> elements;
  for (const auto& item : list.items()) elements.push_back(from_value(item));
  return elements;
}

Value dict_of(const std::map<std::int64_t, std::int64_t>& map) {
  auto dict = Value::dict({});
  for (const auto& [key, number] : map) dict.set(key, number);
  return dict;
}

std::map<std::int64_t, std::int64_t> map_of(const Value& dict) {
  std::map<std::int64_t, std::int64_t> map;
  for (const auto& [key, number] : dict.entries()) map[key.integer()] = number.integer();
  return map;
}

}  // namespace

void StateFields::operator()(const char* name, bool& field) {
  transfer(
      name, field, [](bool truth) { return Value(truth); }, [](const Value& value) { return value.boolean(); });
}

void StateFields::operator()(const char* name, std::int64_t& field) {
  transfer(
      name, field, [](std::int64_t number) { return Value(number); },
      [](const Value& value) { return value.integer(); });
}

void StateFields::operator()(const char* name, double& field) {
  transfer(
      name, field, [](double number) { return Value(number); }, [](const Value& value) { return value.number(); });
}

void StateFields::operator()(const char* name, std::string& field) {
  transfer(
      name, field, [](const std::string& text) { return Value(text); },
      [](const Value& value) { return value.string(); });
}

void StateFields::operator()(const char* name, std::vector<double>& field) {
  transfer(
      name, field, [](const std::vector<double>& list) { return Value::list_of(list); },
      [&](const Value& list) {
        return elements_of<double>(name, field.size(), list, [](const Value& item) { return item.number(); });
      });
}

void StateFields::operator()(const char* name, std::vector<std::int64_t>& field) {
  transfer(
      name, field, [](const std::vector<std::int64_t>& list) { return Value::list_of(list); },
      [&](const Value& list) {
        return elements_of<std::int64_t>(name, field.size(), list, [](const Value& item) { return item.integer(); });
      });
}

void StateFields::operator()(const char* name, std::map<std::int64_t, std::int64_t>& field) {
  transfer(name, field, dict_of, map_of);
}

}  // namespace lockstep::optim
