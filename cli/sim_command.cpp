#include "sim_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "gallery_command.h"
#include "lockstep/base/error.h"
#include "lockstep/launch/pipe_lines.h"
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
  std::optional<std::string> device_memory;
  std::optional<int> gdb_rank;
  std::optional<int> pdb_rank;
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
  add("--device-memory", to.device_memory, "SIZE",
      "of each rank's pretend device, such as 64MiB, for Python scripts and programs with sim::main");
  auto* gdb = add("--gdb", to.gdb_rank, "RANK", "runs under gdb, here in the terminal; the others wait for it");
  add("--pdb", to.pdb_rank, "RANK", "the same under pdb, for a Python program")->excludes(gdb);
  add_word("--on-verdict", to.on_verdict, {"end", "stacks", "hold"},
           "end the ranks, show the stacks of all their threads first, or keep them for a debugger (which takes a "
           "terminal)");
  add("--out", to.out, "FOLDER",
      "keeps the run and the ranks' output, which is not shown then; it holds one run (default: "
      "lockstep-runs/<time>-<pid> when there is a verdict)");
  command.add_flag("--json", to.as_json, "print the verdict document; the ranks' stdout goes to stderr");
  command.add_flag("--quiet", to.is_quiet, "print nothing of our own when all is well");
  add_word("--color", to.color, {"auto", "always", "never"}, "colours, for which NO_COLOR counts as well");
}

std::optional<std::chrono::milliseconds> milliseconds_of(const std::string& option,
                                                         const std::optional<double>& seconds) {
  constexpr double kMost = 1e9;  // thirty years
  if (!seconds) return std::nullopt;
  if (!(*seconds > 0 && *seconds <= kMost)) {
    throw InvalidArgument({.where = option,
                           .expected = "a number of seconds above 0, and at most a thousand million",
                           .got = fmt::format("{}", *seconds),
                           .fix = "Leave the option out for no limit."});
  }
  return std::chrono::milliseconds(static_cast<long long>(std::ceil(*seconds * 1000)));
}

std::optional<std::uint64_t> bytes_of(const std::string& option, const std::optional<std::string>& size) {
  if (!size) return std::nullopt;
  auto bytes = *size;
  bool is_size = !bytes.starts_with('-');
  try {
    is_size = is_size && CLI::AsSizeValue(/*kb_is_1000=*/true)(bytes).empty() && bytes != "0";
  } catch (const CLI::ValidationError&) {
    is_size = false;
  }
  if (is_size) return std::stoull(bytes);
  throw InvalidArgument({.where = option,
                         .expected = "a size above 0",
                         .got = "'" + *size + "'",
                         .fix = "Write it as 64MiB, or 67108864."});
}

std::optional<sim::DebuggedRank> debugged_of(const Arguments& arguments) {
  using enum sim::DebuggedRank::Debugger;
  if (arguments.pdb_rank) return sim::DebuggedRank{.rank = *arguments.pdb_rank, .debugger = pdb};
  if (arguments.gdb_rank) return sim::DebuggedRank{.rank = *arguments.gdb_rank, .debugger = gdb};
  return std::nullopt;
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

sim::LaunchOptions options_of(const Arguments& arguments, const CommandLine& line) {
  const auto environment = state::Environment::of_process();
  return {.num_ranks = arguments.num_ranks,
          .argv = line.program,
          .function = arguments.function,
          .environment = environment.variables(),
          .output = output_of(arguments),
          .log_folder = arguments.out,
          .colour = is_coloured(arguments, environment, STDERR_FILENO) &&
                    (arguments.as_json || is_coloured(arguments, environment, STDOUT_FILENO)),
          .stdout_to_stderr = arguments.as_json,
          .tell = [](std::string_view text) { std::cerr << "lockstep sim: " << text << std::endl; },
          .is_quiet = arguments.is_quiet,
          .holds_back = true,
          .command_line = line.all,
          .timeout = milliseconds_of("--timeout", arguments.timeout_s),
          .stall = milliseconds_of("--stall", arguments.stall_s),
          .check = arguments.check,
          .strict_places = arguments.strict_places,
          .device_memory_bytes = bytes_of("--device-memory", arguments.device_memory),
          .debugged = debugged_of(arguments),
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

// A run that went well leaves nothing unless it was asked to.
void keep(const sim::LaunchResult& result, const Arguments& arguments) {
  if (arguments.out.empty() && nlohmann::json::parse(result.verdict).value("verdict", "") == "ok") return;
  const std::filesystem::path folder =
      arguments.out.empty() ? sim::default_run_folder() : std::filesystem::path(arguments.out);
  sim::write_run_folder(folder, result);
  if (arguments.is_quiet) return;
  std::cerr << "lockstep sim: kept in " << folder.string() << std::endl;
  std::ptrdiff_t held = 0;
  for (const auto& rank : result.ranks) held += std::ranges::count(rank.held(), '\n');
  if (held == 0) return;
  std::cerr << "lockstep sim: " << held << " further " << (held == 1 ? "line of a rank" : "lines of ranks")
            << " after the verdict " << (held == 1 ? "is" : "are") << " in " << (folder / "rank*.log").string()
            << std::endl;
}

// What was held back, where it cannot be kept.
void print_held(const sim::LaunchResult& result) {
  for (const auto& rank : result.ranks) {
    std::cerr << launch::with_label("[rank " + std::to_string(rank.rank) + "] ", rank.held());
  }
  std::cerr << std::flush;
}

int simulate(const Arguments& arguments, const CommandLine& line) {
  if (arguments.gear != "process") {
    throw NotSupported({.where = kWhere,
                        .expected = "--gear process",
                        .got = "--gear " + arguments.gear + ", which is not built yet"});
  }
  const auto options = options_of(arguments, line);
  if (!arguments.out.empty()) sim::make_run_folder(arguments.out);
  const auto result = sim::run(options);
  print_verdict(result, arguments);
  try {
    keep(result, arguments);
  } catch (const Error& error) {  // the run's own outcome counts for more
    std::cerr << "lockstep sim: not kept: " << error.what() << std::endl;
    print_held(result);
  }
  return result.exit_code;
}

}  // namespace

CommandLine take_program(int& argc, char** argv) {
  char** const end = argv + argc;
  char** const mark = std::find(argv, end, std::string_view("--"));
  CommandLine line{.all = {argv, end}};
  if (mark == end) return line;
  argc = static_cast<int>(mark - argv);
  line.program.assign(mark + 1, end);
  return line;
}

void add_sim_command(CLI::App& app, CommandLine line, int& exit_code) {
  auto* command = app.add_subcommand(
      "sim", "Run a program's ranks here, watched: lockstep sim [-n N] [OPTIONS] -- PROGRAM [ARGUMENTS]");
  command->footer(
      "Every collective is checked before it runs, and a deadlock is proved instead of waited for.\n"
      "Example: lockstep sim -n 4 -- ./train --epochs 2\n"
      "Example: lockstep sim -n 4 --stall 5 --on-verdict stacks -- python train.py\n"
      "Example: lockstep sim -n 2 --gdb 1 -- ./train (--pdb 1 for python train.py)\n"
      "Example: lockstep sim -n 2 --function train --device-memory 64MiB -- ./program\n"
      "Example: lockstep sim -n 2 --check sampled:100 --timeout 600 --json --out run1 -- ./train\n"
      "Example: lockstep sim -- torchrun --nproc-per-node 4 train.py");
  command->allow_extras();
  const auto arguments = std::make_shared<Arguments>();
  add_options(*command, *arguments);
  add_gallery_command(*command, exit_code);
  command->callback([command, arguments, line = std::move(line), &exit_code] {
    if (!command->get_subcommands().empty()) {
      if (!line.program.empty())
        throw InvalidArgument({.where = "sim gallery",
                               .expected = "no program",
                               .got = line.program.front(),
                               .fix = "Run a program of yours by lockstep sim, without gallery."});
      return;
    }
    if (const auto extra = command->remaining(); !extra.empty()) {
      throw InvalidArgument({.where = kWhere,
                             .expected = "options, then -- and the program",
                             .got = extra.front(),
                             .fix = "lockstep sim --help shows the options."});
    }
    exit_code = simulate(*arguments, line);
  });
}

}  // namespace lockstep::cli
