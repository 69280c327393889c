#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/value/value.h"

namespace lockstep::optim {

/// The fields of a schedule by name: each is written into a dict, or read from one. A schedule names them once, for
/// both directions. A name that the dict lacks leaves its field as it is.
class LOCKSTEP_API StateFields {
 public:
  static StateFields to_write() { return StateFields(nullptr); }
  /// @param state  a dict, which outlives this
  static StateFields to_read(const Value& state) { return StateFields(&state); }

  /// @throws TypeError  if the dict has something of another kind under the name
  void operator()(const char* name, bool& field);
  void operator()(const char* name, std::int64_t& field);
  void operator()(const char* name, double& field);
  void operator()(const char* name, std::string& field);
  void operator()(const char* name, std::vector<double>& field);
  void operator()(const char* name, std::vector<std::int64_t>& field);
  void operator()(const char* name, std::map<std::int64_t, std::int64_t>& field);
  /// A field that says itself how it is written and read.
  [[nodiscard]] bool is_reading() const noexcept { return state_ != nullptr; }
  void write(const char* name, Value field) { written_.set(name, std::move(field)); }
  [[nodiscard]] const Value* read(const char* name) const { return state_->find(name); }

  [[nodiscard]] Value written() const { return written_; }

 private:
  explicit StateFields(const Value* state) : state_(state) {}
  template <typename Field, typename ToValue, typename FromValue>
  void transfer(const char* name, Field& field, ToValue to_value, FromValue from_value);

  const Value* state_;
  Value written_ = Value::dict({});
};

}  // namespace lockstep::optim
