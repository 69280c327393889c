#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/base/logging.h"

namespace lockstep::state {

/// The variables that a rank sees: a value, read once from the process and passed on. Nothing else in the reference
/// looks at the process's environment.
class LOCKSTEP_API Environment {
 public:
  Environment() = default;
  Environment(std::initializer_list<std::pair<const std::string, std::string>> variables) : variables_(variables) {}

  /// A copy of the process's variables as they are now.
  static Environment of_process();

  /// The value; none for a variable that is unset or empty.
  [[nodiscard]] std::optional<std::string> find(const std::string& name) const;
  /// A whole number. @throws InvalidArgument naming the variable when it holds something else
  [[nodiscard]] std::optional<int> number(const std::string& name) const;
  /// Whether a switch is on: 1, y, yes, t, true, on; off: 0, n, no, f, false, off; any case.
  /// @throws InvalidArgument naming the variable when it holds another word
  [[nodiscard]] bool flag(const std::string& name, bool otherwise = false) const;
  /// Seconds, fractions allowed. @throws InvalidArgument unless it is a positive number
  [[nodiscard]] std::optional<std::chrono::milliseconds> seconds(const std::string& name) const;
  /// @throws FileError naming the variable when it holds no existing folder
  [[nodiscard]] std::optional<std::string> folder(const std::string& name) const;
  /// @throws InvalidArgument naming the variable when it holds no log level
  [[nodiscard]] std::optional<log::Level> log_level(const std::string& name) const;

  void set(const std::string& name, const std::string& value) { variables_[name] = value; }
  void unset(const std::string& name) { variables_.erase(name); }
  [[nodiscard]] const std::map<std::string, std::string>& variables() const noexcept { return variables_; }

  /// Makes these the process's variables. Only for a process that was just started and has one thread.
  void apply_to_process() const;

  bool operator==(const Environment&) const = default;

 private:
  std::map<std::string, std::string> variables_;
};

/// A variable of Lockstep's own, for `lockstep env` and for the warning about misspelt ones.
struct KnownVariable {
  std::string_view name;
  std::string_view meaning;
};
LOCKSTEP_API const std::vector<KnownVariable>& known_variables();

/// Text of a warning for each LOCKSTEP_ variable that does not exist, with the nearest name that does.
LOCKSTEP_API std::vector<std::string> unknown_variable_warnings(const Environment& environment);

}  // namespace lockstep::state
