#include "lockstep/state/environment_check.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/state/placement.h"

namespace lockstep::state {

std::vector<std::string> refused_variable_warnings(const Environment& environment) {
  std::vector<std::string> warnings;
  const auto ask = [&warnings](const auto& read) {
    try {
      static_cast<void>(read());
    } catch (const Error& refusal) {
      const std::string text = refusal.what();
      if (std::ranges::find(warnings, text) == warnings.end()) warnings.push_back(text);
    }
  };
  ask([&] { return environment.log_level("LOCKSTEP_LOG_LEVEL"); });
  ask([&] { return environment.seconds("LOCKSTEP_TIMEOUT"); });
  ask([&] { return environment.folder("LOCKSTEP_TRACE_DIR"); });
  ask([&] { return environment.flag("LOCKSTEP_SIM"); });
  ask([&] { return chosen_backend(environment); });
  // place() names one variable; each of the others may be wrong as well.
  for (const auto& name : rank_variables()) ask([&] { return environment.number(name); });
  ask([&] { return place(environment, {}); });
  return warnings;
}

}  // namespace lockstep::state
