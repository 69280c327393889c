#include "sim_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "gallery_command.h"
#include "lockstep/base/error.h"
#include "lockstep/sim/report/text_report.h"
#include "lockstep/sim/world/launch.h"
#include "lockstep/sim/world/run_folder.h"
#include "lockstep/state/environment.h"

namespace lockstep::cli {
namespace {

constexpr auto kWhere = "sim";

// The command line, as it was typed.
struct Arguments {
  std::optional<int> num_ranks;
  std::string gear = "process";
  std::string function;
  std::optional<double> stall_s;
  std::optional<double> timeout_s;
  std::string check = "full";
  bool strict_places = false;
  std::optional<std::uint64_t> device_memory_bytes;
  std::optional<int> gdb_rank;
  std::string on_verdict = "end";
  std::string out;
  bool as_json = false;
  bool is_quiet = false;
  std::string color = "auto";
};

void add_options(CLI::App& command, Arguments& to) {
  const auto add = [&command](const char* name, auto& value, const char* type, const std::string& help) {
    return command.add_option(name, value, help)->type_name(type);
  };
  const auto add_word = [&](const char* name, std::string& value, const std::vector<std::string>& words,
                            const std::string& help) {
    command.add_option(name, value, help)->check(CLI::IsMember(words))->type_name("WORD")->capture_default_str();
  };
  add("-n,--num-ranks", to.num_ranks, "N",
      "so many copies of the program are the ranks; without it the program is started once, and the ranks that it "
      "starts are watched (torchrun, accelerate launch, mpirun)");
  add_word("--gear", to.gear, {"process", "cooperative"}, "how ranks run; cooperative is not built yet");
  add("--function", to.function, "NAME", "the function to run, of a program with sim::main; others ignore it");
  command.add_flag("--strict-places", to.strict_places, "ranks that call from different lines are a mismatch");
  add("--stall", to.stall_s, "SECONDS", "a rank that lets others wait longer is a straggler");
  add("--timeout", to.timeout_s, "SECONDS", "the whole run may take no longer");
  add("--check", to.check, "LEVEL", "off, sampled:N (every N-th call) or full")->capture_default_str();
  add("--device-memory", to.device_memory_bytes, "SIZE",
      "of each rank's pretend device, such as 64MiB, for programs with sim::main")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true).description(""));
  add("--gdb", to.gdb_rank, "RANK", "runs under gdb, here in the terminal; the others wait for it");
  add_word("--on-verdict", to.on_verdict, {"end", "stacks", "hold"},
           "end the ranks, show the stacks of all their threads first, or keep them for a debugger");
  add("--out", to.out, "FOLDER",
      "keeps the run and the ranks' output, which is not shown then (default: lockstep-runs/<time>-<pid> when there is "
      "a verdict)");
  command.add_flag("--json", to.as_json, "print the verdict document; the ranks' stdout goes to stderr");
  command.add_flag("--quiet", to.is_quiet, "print nothing of our own when all is well");
  add_word("--color", to.color, {"auto", "always", "never"}, "colours, for which NO_COLOR counts as well");
}

std::optional<std::chrono::milliseconds> milliseconds_of(const std::optional<double>& seconds) {
  if (!seconds) return std::nullopt;
  return std::chrono::milliseconds(static_cast<long long>(*seconds * 1000));
}

bool is_coloured(const Arguments& arguments, const state::Environment& environment, int stream) {
  if (arguments.color != "auto") return arguments.color == "always";
  return isatty(stream) != 0 && !environment.find("NO_COLOR");
}

sim::RankOutput output_of(const Arguments& arguments) {
  if (!arguments.out.empty()) return sim::RankOutput::files;
  return arguments.num_ranks ? sim::RankOutput::labelled : sim::RankOutput::inherited;
}

sim::OnVerdict on_verdict_of(const Arguments& arguments) {
  if (arguments.on_verdict == "stacks") return sim::OnVerdict::stacks;
  return arguments.on_verdict == "hold" ? sim::OnVerdict::hold : sim::OnVerdict::end;
}

sim::LaunchOptions options_of(const Arguments& arguments, const std::vector<std::string>& program) {
  const auto environment = state::Environment::of_process();
  return {.num_ranks = arguments.num_ranks,
          .argv = program,
          .function = arguments.function,
          .environment = environment.variables(),
          .output = output_of(arguments),
          .log_folder = arguments.out,
          .colour = is_coloured(arguments, environment, STDERR_FILENO) &&
                    (arguments.as_json || is_coloured(arguments, environment, STDOUT_FILENO)),
          .stdout_to_stderr = arguments.as_json,
          .tell = [](std::string_view text) { std::cerr << "lockstep sim: " << text << std::endl; },
          .is_quiet = arguments.is_quiet,
          .timeout = milliseconds_of(arguments.timeout_s),
          .stall = milliseconds_of(arguments.stall_s),
          .check = arguments.check,
          .strict_places = arguments.strict_places,
          .device_memory_bytes = arguments.device_memory_bytes,
          .gdb_rank = arguments.gdb_rank,
          .on_verdict = on_verdict_of(arguments)};
}

void print_verdict(const sim::LaunchResult& result, const Arguments& arguments) {
  if (arguments.as_json) {
    std::cout << nlohmann::ordered_json::parse(result.verdict).dump(2) << std::endl;
    return;
  }
  const auto verdict = sim::report::parse_verdict(result.verdict);
  if (arguments.is_quiet && verdict.outcome == sim::report::Outcome::ok) return;
  const bool colour = is_coloured(arguments, state::Environment::of_process(), STDOUT_FILENO);
  std::cout << sim::report::to_text(verdict, {.colour = colour}) << std::flush;
}

// A run that went well, or that the user ended, leaves nothing unless it was asked to.
void keep(const sim::LaunchResult& result, const Arguments& arguments) {
  const auto word = nlohmann::json::parse(result.verdict).value("verdict", "");
  if (arguments.out.empty() && (word == "ok" || word == "interrupted")) return;
  const std::filesystem::path folder =
      arguments.out.empty() ? sim::default_run_folder() : std::filesystem::path(arguments.out);
  sim::write_run_folder(folder, result);
  if (!arguments.is_quiet) std::cerr << "lockstep sim: kept in " << folder.string() << std::endl;
}

int simulate(const Arguments& arguments, const std::vector<std::string>& program) {
  if (arguments.gear != "process") {
    throw NotSupported({.where = kWhere,
                        .expected = "--gear process",
                        .got = "--gear " + arguments.gear + ", which is not built yet"});
  }
  if (!arguments.out.empty()) sim::make_folder(arguments.out);
  const auto result = sim::run(options_of(arguments, program));
  print_verdict(result, arguments);
  try {
    keep(result, arguments);
  } catch (const Error& error) {  // the run's own outcome counts for more
    std::cerr << "lockstep sim: not kept: " << error.what() << std::endl;
  }
  return result.exit_code;
}

}  // namespace

std::vector<std::string> take_program(int& argc, char** argv) {
  char** const end = argv + argc;
  char** const mark = std::find(argv, end, std::string_view("--"));
  if (mark == end) return {};
  argc = static_cast<int>(mark - argv);
  return {mark + 1, end};
}

void add_sim_command(CLI::App& app, std::vector<std::string> program, int& exit_code) {
  auto* command = app.add_subcommand(
      "sim", "Run a program's ranks here, watched: lockstep sim [-n N] [OPTIONS] -- PROGRAM [ARGUMENTS]");
  command->footer(
      "Every collective is checked before it runs, and a deadlock is proved instead of waited for.\n"
      "Example: lockstep sim -n 4 -- ./train --epochs 2\n"
      "Example: lockstep sim -- torchrun --nproc-per-node 4 train.py");
  command->allow_extras();
  const auto arguments = std::make_shared<Arguments>();
  add_options(*command, *arguments);
  add_gallery_command(*command, exit_code);
  command->callback([command, arguments, program = std::move(program), &exit_code] {
    if (!command->get_subcommands().empty()) {
      if (!program.empty())
        throw InvalidArgument({.where = "sim gallery", .expected = "no program", .got = program.front()});
      return;
    }
    if (const auto extra = command->remaining(); !extra.empty()) {
      throw InvalidArgument({.where = kWhere,
                             .expected = "options, then -- and the program",
                             .got = extra.front(),
                             .fix = "lockstep sim --help shows the options."});
    }
    exit_code = simulate(*arguments, program);
  });
}

}  // namespace lockstep::cli
