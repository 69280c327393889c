#include "lockstep/conformance/serve/program_log.h"

#include "lockstep/conformance/serve/answers.h"

namespace lockstep::conformance {

void ProgramLog::run(const std::string& verb, const std::function<void(Json& entry)>& work) {
  auto& entry = entries_.emplace_back(Json{{"v", verb}});
  const auto outcome = attempt([&] {
    work(entry);
    return Json();
  });
  if (outcome.is_null()) return;
  entry["failed"] = outcome["error"];
  throw Ended();
}

void ProgramLog::until_failure(const std::function<void()>& program) try { program(); } catch (const Ended&) {
}

Json ProgramLog::to_json() const {
  auto log = Json::array();
  for (const auto& entry : entries_) log.push_back(entry);
  return log;
}

}  // namespace lockstep::conformance
