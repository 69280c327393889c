#pragma once

#include <deque>
#include <functional>
#include <string>

#include "lockstep/conformance/serve/arguments.h"

namespace lockstep::conformance {

/// The log of a program: an entry for every executed verb, in the order in which they begin. A verb that fails gets
/// `failed` in its entry, and ends the program.
class ProgramLog {
 public:
  /// Adds the verb's entry and runs `work`, which adds what it has to say, and may run further verbs.
  void run(const std::string& verb, const std::function<void(Json& entry)>& work);

  /// Runs `program`; a verb's failure ends it and is no error.
  static void until_failure(const std::function<void()>& program);

  [[nodiscard]] Json to_json() const;

 private:
  struct Ended {};
  std::deque<Json> entries_;  // whose elements stay where they are while more are added
};

}  // namespace lockstep::conformance
