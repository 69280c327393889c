#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/base/export.h"

namespace lockstep {

namespace value {
/// What counts as an integer; neither a bool nor a character is one.
template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;
}  // namespace value

/// Nested data, as a data set yields it and collectives carry it: a leaf (none, bool, int, float, string, bytes,
/// tensor, opaque) or a container of Values (list, tuple, named tuple, dict).
///
///     Value batch = Value::dict({{"x", images}, {"meta", Value::list({"digits", 3})}});
///     batch["x"].tensor();  batch["meta"][1].integer();  batch["y"];  // the last one throws KeyError
///
/// A Value is a value: a copy shares no container with its original. Tensors are handles, as everywhere in LibTorch, so
/// copies refer to the same elements; an undefined tensor is none. Opaque objects are shared and constant.
/// An accessor of another kind than the Value's throws TypeError, which names both.
///
/// @clause OPS-001
class LOCKSTEP_API Value {
 public:
  enum class Kind { none, boolean, integer, real, string, bytes, tensor, list, tuple, named_tuple, dict, opaque };

  /// What a dict's entry is known by: a string or an integer.
  class LOCKSTEP_API Key {
   public:
    Key(std::string name) : key_(std::move(name)) {}
    Key(std::string_view name) : key_(std::string(name)) {}
    Key(const char* name) : key_(std::string(name)) {}
    template <value::Integer Integer>
    Key(Integer number) : key_(checked_integer(number)) {}

    [[nodiscard]] bool is_string() const noexcept { return std::holds_alternative<std::string>(key_); }
    /// @throws TypeError  if the key is of the other kind
    [[nodiscard]] const std::string& string() const;
    [[nodiscard]] std::int64_t integer() const;
    auto operator<=>(const Key&) const = default;

   private:
    std::variant<std::int64_t, std::string> key_;
  };

  using Entry = std::pair<Key, Value>;          ///< of a dict
  using Field = std::pair<std::string, Value>;  ///< of a named tuple
  using Bytes = std::vector<std::uint8_t>;

  // Leaves convert from what they hold; a pointer is never taken for a bool, nor a large unsigned for a negative.
  Value() = default;  ///< none
  Value(std::nullptr_t) {}
  template <std::same_as<bool> Bool>
  Value(Bool truth) : data_(truth) {}
  template <value::Integer Integer>
  Value(Integer number) : data_(checked_integer(number)) {}
  template <std::floating_point Real>
  Value(Real number) : data_(static_cast<double>(number)) {}
  Value(const char* text) : data_(std::string(text)) {}
  Value(std::string_view text) : data_(std::string(text)) {}
  Value(std::string text) : data_(std::move(text)) {}
  Value(Bytes bytes) : data_(std::move(bytes)) {}
  Value(at::Tensor tensor);

  static Value list(std::vector<Value> items) { return of(List{std::move(items)}); }
  static Value tuple(std::vector<Value> items) { return of(Tuple{std::move(items)}); }
  /// A list of what a range holds: `Value::list_of(std::vector<at::Tensor>{...})`.
  template <std::ranges::input_range Range>
  static Value list_of(const Range& range);
  /// @throws InvalidArgument  if two fields have the same name
  static Value named_tuple(std::string name, std::vector<Field> fields);
  /// A repeated key keeps its first place and its last value.
  static Value dict(std::vector<Entry> entries);
  /// An object that operations hand through and that is never sent. `type_name` is for messages.
  template <typename T>
  static Value opaque(std::shared_ptr<const T> object, std::string type_name);

  [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>(data_.index()); }
  /// "tensor", "named tuple Point", "dict", or an opaque object's type name.
  [[nodiscard]] std::string type_name() const;
  [[nodiscard]] bool is_none() const noexcept { return kind() == Kind::none; }
  [[nodiscard]] bool is_boolean() const noexcept { return kind() == Kind::boolean; }
  [[nodiscard]] bool is_integer() const noexcept { return kind() == Kind::integer; }
  [[nodiscard]] bool is_real() const noexcept { return kind() == Kind::real; }
  [[nodiscard]] bool is_string() const noexcept { return kind() == Kind::string; }
  [[nodiscard]] bool is_bytes() const noexcept { return kind() == Kind::bytes; }
  [[nodiscard]] bool is_tensor() const noexcept { return kind() == Kind::tensor; }
  [[nodiscard]] bool is_list() const noexcept { return kind() == Kind::list; }
  [[nodiscard]] bool is_tuple() const noexcept { return kind() == Kind::tuple; }
  [[nodiscard]] bool is_named_tuple() const noexcept { return kind() == Kind::named_tuple; }
  [[nodiscard]] bool is_dict() const noexcept { return kind() == Kind::dict; }
  [[nodiscard]] bool is_opaque() const noexcept { return kind() == Kind::opaque; }
  [[nodiscard]] bool is_sequence() const noexcept { return is_list() || is_tuple() || is_named_tuple(); }
  [[nodiscard]] bool is_container() const noexcept { return is_sequence() || is_dict(); }

  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double real() const;
  [[nodiscard]] double number() const;  ///< a float, or an int as one
  [[nodiscard]] const std::string& string() const;
  [[nodiscard]] const Bytes& bytes() const;
  [[nodiscard]] const at::Tensor& tensor() const;
  /// The opaque object. @throws TypeError  if it was made from another type than T
  template <typename T>
  [[nodiscard]] std::shared_ptr<const T> object() const;

  // Containers.
  [[nodiscard]] std::size_t size() const;                        ///< number of elements of any container
  [[nodiscard]] const std::vector<Value>& items() const;         ///< of a list, tuple or named tuple
  [[nodiscard]] const std::vector<Entry>& entries() const;       ///< of a dict, in insertion order
  [[nodiscard]] const std::vector<std::string>& fields() const;  ///< names of a named tuple's items
  [[nodiscard]] const std::string& named_tuple_name() const;
  /// A dict's entry, or null. Searches from the front: dicts here have few keys.
  [[nodiscard]] const Value* find(const Key& key) const;
  [[nodiscard]] bool contains(const Key& key) const { return find(key) != nullptr; }
  /// A dict's entry, or a named tuple's field. @throws KeyError  listing the names that exist
  const Value& operator[](std::string_view name) const;
  /// A sequence's item, or a dict's entry with that integer key. @throws OutOfRange, KeyError
  template <value::Integer Integer>
  const Value& operator[](Integer index) const {
    return element(checked_integer(index));
  }

  void append(Value item);         ///< to a list
  void set(Key key, Value value);  ///< in a dict: replaces the entry, or adds it at the end

  // What traversals are made of (value/traverse.h): any container as an ordered row of children.
  [[nodiscard]] const Value& child(std::size_t position) const;
  /// The same container around other children: kind, names, keys and order stay.
  [[nodiscard]] Value with_children(std::vector<Value> children) const;

  /// Same kind, names, order and leaves. Numbers are compared by bits, so that NaN equals itself; tensors by dtype,
  /// shape and the bits of their elements, wherever they are; opaque objects by identity.
  LOCKSTEP_API friend bool operator==(const Value& left, const Value& right);

 private:
  struct List {
    std::vector<Value> items;
  };
  struct Tuple {
    std::vector<Value> items;
  };
  struct NamedTuple {
    std::string name;
    std::vector<std::string> fields;
    std::vector<Value> items;
  };
  struct Dict {
    std::vector<Entry> entries;
  };
  struct Opaque {
    std::shared_ptr<const void> object;
    std::type_index type;
    std::string type_name;
  };
  // In the order of Kind.
  using Data = std::variant<std::monostate, bool, std::int64_t, double, std::string, Bytes, at::Tensor, List, Tuple,
                            NamedTuple, Dict, Opaque>;

  static Value of(Data data) {
    Value value;
    value.data_ = std::move(data);
    return value;
  }
  template <value::Integer Integer>
  static std::int64_t checked_integer(Integer number) {
    if (!std::in_range<std::int64_t>(number)) integer_too_large();
    return static_cast<std::int64_t>(number);
  }
  [[noreturn]] static void integer_too_large();
  [[noreturn]] void wrong_kind(const char* accessor, const std::string& expected) const;
  template <typename T>
  const T& get(const char* accessor, const char* expected) const;
  const Value& element(std::int64_t index) const;
  std::shared_ptr<const void> object_of(std::type_index type) const;

  Data data_;
};

/// A short text for messages and test output: `{"x": tensor<float32>[2, 3], "n": (1, 2.5)}`; long containers are cut.
LOCKSTEP_API std::string to_text(const Value& value);
LOCKSTEP_API std::string to_text(const Value::Key& key);
LOCKSTEP_API std::ostream& operator<<(std::ostream& out, const Value& value);

template <std::ranges::input_range Range>
Value Value::list_of(const Range& range) {
  std::vector<Value> items;
  for (const auto& item : range) items.emplace_back(item);
  return list(std::move(items));
}

template <typename T>
Value Value::opaque(std::shared_ptr<const T> object, std::string type_name) {
  return of(Opaque{std::move(object), typeid(T), std::move(type_name)});
}

template <typename T>
std::shared_ptr<const T> Value::object() const {
  return std::static_pointer_cast<const T>(object_of(typeid(T)));
}

}  // namespace lockstep
