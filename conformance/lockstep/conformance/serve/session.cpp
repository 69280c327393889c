#include "lockstep/conformance/serve/session.h"

#include <istream>

#include "lockstep/conformance/serve/answers.h"
#include "lockstep/conformance/serve/case_state.h"
#include "lockstep/conformance/serve/clean_output.h"
#include "lockstep/conformance/serve/operations.h"

namespace lockstep::conformance {
namespace {

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// `args`, where the entry of `rank_args` for this rank takes precedence, field by field.
Json arguments_of(Arguments& request, World world) {
  auto arguments = request.json("args");
  if (arguments.is_null()) arguments = Json::object();
  const auto overlays = request.json("rank_args");
  if (overlays.is_null()) return arguments;
  if (!arguments.is_object() || !overlays.is_array() || overlays.size() != static_cast<std::size_t>(world.size)) {
    throw Unsupported("rank_args: expected an entry for each rank");
  }
  const auto& mine = overlays[static_cast<std::size_t>(world.rank)];
  if (!mine.is_object()) throw Unsupported("rank_args: expected objects");
  for (const auto& [name, value] : mine.items()) arguments[name] = value;
  return arguments;
}

/// What any operation may be given beside its own arguments.
CaseStart start_of(Arguments& request, Arguments& arguments) {
  CaseStart start{.seed = arguments.optional_integer("rank_seed").value_or(request.integer("seed", 0))};
  auto variables = arguments.json("env");
  if (variables.is_null()) variables = Json::object();
  for (const auto& [name, value] : variables.items()) {
    if (!value.is_string()) arguments.refuse("env", "strings");
    start.environment.emplace_back(name, value.get<std::string>());
  }
  if (arguments.word("device", "cpu") != "cpu") arguments.refuse("device", "cpu");
  return start;
}

Json result_of(const Json& json, const SessionRank& rank) {
  Arguments request(json, "request");
  static_cast<void>(request.json("id"));                    // which answer() has read
  static_cast<void>(request.optional_number("timeout_s"));  // whoever asks keeps the time
  const auto run = operation_named(request.word("op"));
  Arguments arguments(arguments_of(request, rank.world()), "args");
  const auto start = start_of(request, arguments);
  request.finish();
  const CaseScope scope(rank, start);
  return run(arguments, {.session = rank, .start = start});
}

Json answer_to(const std::string& line, const SessionRank& rank) {
  const auto request = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object()) return {{"id", nullptr}, {"unsupported", "no request: " + line.substr(0, 80)}};
  return answer(request.value("id", Json()), [&] { return result_of(request, rank); });
}

}  // namespace

void serve(std::istream& requests, const std::string& version) {
  const CleanOutput output;
  SessionRank rank;
  rank.meet();  // before the hello, so that a world that cannot be made is no answer to a case
  output.write_line(
      line_of({{"hello", 1}, {"name", "lockstep"}, {"version", version}, {"capabilities", capabilities()}}));
  for (std::string line; std::getline(requests, line);) output.write_line(line_of(answer_to(line, rank)));
}

}  // namespace lockstep::conformance
