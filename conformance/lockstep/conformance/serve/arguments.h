#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lockstep/conformance/serve/unsupported.h"
#include "lockstep/value/value.h"

namespace lockstep::conformance {

using Json = nlohmann::ordered_json;

/// An object of a request, read field by field. What is asked for is known; `finish()` refuses what is left over, so
/// that no argument is ever ignored. A field of another type than asked for is refused too.
///
///     const auto n = arguments.integer("n");
///     const auto batch_size = arguments.optional_integer("b", 1);
///     arguments.finish();
class Arguments {
 public:
  /// @param place  of the object in the request, for messages: "args", "args.loader"
  /// @throws Unsupported  if it is no object
  Arguments(Json object, std::string place);

  /// Whether the field is there, also as null.
  [[nodiscard]] bool has(const std::string& name) const { return object_.contains(name); }

  // Without a default the field has to be there.
  std::int64_t integer(const std::string& name, std::optional<std::int64_t> otherwise = {});
  std::int64_t length(const std::string& name);               // 0 or more
  std::int64_t positive(const std::string& name);             // 1 or more
  int small_integer(const std::string& name, int otherwise);  // of 32 bits
  double number(const std::string& name, std::optional<double> otherwise = {});
  bool flag(const std::string& name, bool otherwise);
  std::string word(const std::string& name, std::optional<std::string> otherwise = {});
  std::vector<std::int64_t> integers(const std::string& name);
  std::vector<std::string> words(const std::string& name);
  /// Any JSON; null if it is absent.
  Json json(const std::string& name);
  /// A Value of the protocol; none if it is absent.
  Value value(const std::string& name);
  /// An object; empty if it is absent or null.
  Arguments object(const std::string& name);
  /// A list of objects; empty if it is absent.
  std::vector<Arguments> objects(const std::string& name);
  /// An object's fields, each of which is an object, in their order; empty if it is absent.
  std::vector<std::pair<std::string, Arguments>> named_objects(const std::string& name);

  // Fields that may be null, which is none.
  std::optional<std::int64_t> optional_integer(const std::string& name, std::optional<std::int64_t> otherwise = {});
  std::optional<int> optional_small_integer(const std::string& name);
  std::optional<double> optional_number(const std::string& name);
  std::optional<bool> optional_flag(const std::string& name);
  std::optional<std::string> optional_word(const std::string& name);

  /// @throws Unsupported  for a field whose name is no number from 0 on
  void require_names_of_numbers() const;
  /// @throws Unsupported  naming the fields that nobody asked for
  void finish() const;
  /// @throws Unsupported  "PLACE.NAME: expected EXPECTED, got ..."
  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const;

 private:
  /// The field unless it is absent or null; known from now on.
  const Json* find(const std::string& name);
  template <typename T>
  T required(const std::string& name, std::optional<T> found, std::optional<T> otherwise) const;

  Json object_;
  std::string place_;
  std::set<std::string> known_;
};

/// A Value of the protocol. @throws Unsupported  for what is none, or none that Lockstep has
Value value_from(const Json& json, const std::string& place);

}  // namespace lockstep::conformance
