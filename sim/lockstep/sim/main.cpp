#include "lockstep/sim/main.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ATen/Parallel.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/exit_code.h"
#include "lockstep/base/logging.h"
#include "lockstep/launch/rank_report.h"
#include "lockstep/sim/device/memory_report.h"
#include "lockstep/sim/device/memory_setup.h"
#include "lockstep/sim/device/tensor_memory.h"
#include "lockstep/sim/world/rank_starter.h"
#include "lockstep/state/rank_context.h"

namespace lockstep::sim {
namespace {

// What `lockstep sim` hands over; an empty object without it.
nlohmann::json handed_over() {
  const auto spec = state::RankContext::current().environment().find("LOCKSTEP_SIM_SPEC");
  auto json = nlohmann::json::parse(spec.value_or("{}"), nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : nlohmann::json::object();
}

// The name that `lockstep sim --function` gives, else the first argument if it is a function's.
std::optional<std::string> asked_name(const nlohmann::json& spec, int argc, char** argv, const Functions& functions) {
  if (spec.contains("function")) return spec.value("function", "");
  if (argc > 1 && std::ranges::any_of(functions, [&](const auto& function) { return function.first == argv[1]; })) {
    return argv[1];
  }
  return std::nullopt;
}

// At the end, however it comes: what the rank held, where that was counted.
struct MemoryLine {
  ~MemoryLine() {
    if (TensorMemory::is_on()) std::cerr << memory_summary(TensorMemory::report()) << '\n';
  }
};

}  // namespace

namespace {

// The function on this process's rank, and the exit code that comes of it.
int run_on_rank(const nlohmann::json& spec, const std::function<void(Rank&)>& function) {
  set_up_memory(spec);
  auto rank = Rank::of_environment();
  const MemoryLine memory;
  try {
    function(rank);
    return to_int(ExitCode::ok);
  } catch (const std::exception& error) {
    log::error(std::string(kind_of(error)) + ": " + brief(error));
    state::RankContext::current().report_failure(error);
    return to_int(ExitCode::not_well);
  }
}

// A launcher says it once for all ranks.
void refuse(const InvalidArgument& error) {
  const auto launcher = state::Environment::of_process().number("LOCKSTEP_REPORT_FD");
  if (launcher) {
    launch::write_report(static_cast<int>(*launcher), kRefused, error.what());
  } else {
    std::cerr << error.what() << '\n';
  }
}

// For what goes wrong before there is a world.
int guarded(const std::function<int()>& run) {
  try {
    return run();
  } catch (const InvalidArgument& error) {
    refuse(error);
    return to_int(ExitCode::usage);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return to_int(ExitCode::not_well);
  }
}

}  // namespace

int main(int argc, char** argv, const Functions& functions) {
  return guarded([&] {
    if (functions.empty()) throw InvalidArgument({.where = "sim::main", .expected = "a function", .got = "none"});
    const auto spec = handed_over();
    const auto name = asked_name(spec, argc, argv, functions).value_or(functions.front().first);
    const auto function = std::ranges::find(functions, name, [](const auto& entry) { return entry.first; });
    if (function == functions.end()) {
      std::vector<std::string> names;
      for (const auto& entry : functions) names.push_back(entry.first);
      throw InvalidArgument(
          {.where = "--function", .expected = fmt::format("one of {}", fmt::join(names, ", ")), .got = name});
    }
    return run_on_rank(spec, function->second);
  });
}

LaunchResult launch(int num_ranks, const std::function<void(Rank&)>& function, LaunchOptions options) {
  if (options.environment.empty()) options.environment = state::Environment::of_process().variables();
  options.num_ranks = num_ranks;
  options.argv.clear();
  options.body = [&function](int, const Variables& variables) {
    state::Environment environment;
    for (const auto& [name, value] : variables) environment.set(name, value);
    environment.apply_to_process();
    state::reset_process_rank();
    at::set_num_threads(1);  // a forked OpenMP team would hang in its first parallel region
    const int code = guarded([&function] { return run_on_rank(handed_over(), function); });
    if (code == to_int(ExitCode::ok)) state::RankContext::current().report_exit(code);
    return code;
  };
  return run(options);
}

}  // namespace lockstep::sim
