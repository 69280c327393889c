#include "gallery_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/exit_code.h"
#include "lockstep/sim/gallery/gallery_run.h"
#include "lockstep/sim/gallery/generated_run.h"
#include "lockstep/sim/world/command.h"
#include "lockstep/state/environment.h"

namespace lockstep::cli {
namespace {

namespace gallery = sim::gallery;

struct Arguments {
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  int num_generated = 0;
  int num_healthy = -1;
  std::uint64_t seed = 1;
  bool runs_python = false;
  bool lists = false;
  bool as_json = false;
};

std::string_view yes(bool is_so) { return is_so ? "yes" : "NO"; }

void print_row(const gallery::Judgement& one) {
  const auto& program = one.program;
  std::cout << fmt::format("{:<16} {:<44} {:>5}  {:<5} {:<5} {:<5} {:>6.2f}", program.kind, program.name,
                           program.num_ranks, yes(one.is_found), yes(one.is_rank_right), yes(one.is_line_right),
                           one.seconds);
  if (!one.is_well()) {
    if (one.expected) std::cout << "\n    expected: " << one.expected->verdict << " at rank " << one.expected->rank;
    if (one.expected) std::cout << ", " << program.file.filename().string() << ":" << one.expected->line;
    std::cout << "\n    told: " << one.told;
  }
  std::cout << std::endl;
}

nlohmann::ordered_json to_json(const gallery::Judgement& one) {
  return {{"name", one.program.name},        {"kind", one.program.kind}, {"ranks", one.program.num_ranks},
          {"legal", one.program.is_legal},   {"found", one.is_found},    {"rank_right", one.is_rank_right},
          {"line_right", one.is_line_right}, {"seconds", one.seconds},   {"told", one.told}};
}

void print_totals(const gallery::GalleryTotals& totals) {
  std::cout << fmt::format(
      "\nfaults {}  found {}  rank right {}  line right {}  seconds from stall to verdict: median {:.2f}, most "
      "{:.2f}\nlegal programs {}  false verdicts {}\n",
      totals.num_faults, totals.num_found, totals.num_rank_right, totals.num_line_right, totals.median_s,
      totals.slowest_s, totals.num_legal, totals.num_false);
}

std::filesystem::path gallery_program() {
  auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "lockstep_gallery";
  if (std::filesystem::exists(program)) return program;
  throw Missing({.where = "sim gallery",
                 .expected = "lockstep_gallery beside the lockstep program",
                 .got = "no such file",
                 .fix = "Build it: ci/build release lockstep_gallery"});
}

std::filesystem::path python_program() {
  const auto environment = state::Environment::of_process();
  std::filesystem::path python =
      sim::find_program(environment.find("LOCKSTEP_PYTHON").value_or("python3"), environment.find("PATH").value_or(""));
  gallery::require_imports(python);
  return python;
}

int run_generated(const Arguments& arguments) {
  const auto summary = gallery::run_generated_programs(
      {.program = gallery_program(),
       .environment = state::Environment::of_process().variables(),
       .num_faulty = arguments.num_generated,
       .num_healthy = arguments.num_healthy >= 0 ? arguments.num_healthy : arguments.num_generated,
       .seed = arguments.seed,
       .tell = [](const std::string& line) { std::cerr << "missed: " << line << std::endl; }});
  std::cout << summary.to_text();
  return to_int(summary.is_well() ? ExitCode::ok : ExitCode::not_well);
}

int run_gallery(const Arguments& arguments) {
  gallery::GalleryOptions options{.environment = state::Environment::of_process().variables(),
                                  .only = arguments.only,
                                  .exclude = arguments.exclude};
  if (arguments.runs_python) {
    options.scripts = gallery::python_scripts();
  } else {
    options.program = gallery_program();
  }
  const auto programs = gallery::list_programs(options);
  if (arguments.lists) {
    for (const auto& program : programs) std::cout << program.kind << ' ' << program.name << '\n';
    return to_int(ExitCode::ok);
  }
  if (arguments.runs_python) options.program = python_program();
  if (!arguments.as_json) {
    std::cout << fmt::format("{:<16} {:<44} {:>5}  {:<5} {:<5} {:<5} {:>6}\n", "kind", "program", "ranks", "found",
                             "rank", "line", "s");
  }
  std::vector<gallery::Judgement> judgements;
  for (const auto& program : programs) {
    judgements.push_back(gallery::judge(options, program));
    if (!arguments.as_json) print_row(judgements.back());
  }
  const auto totals = gallery::totals_of(judgements);
  if (arguments.as_json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const auto& one : judgements) rows.push_back(to_json(one));
    std::cout << nlohmann::ordered_json{{"v", 1}, {"well", totals.is_well()}, {"programs", rows}}.dump(2) << '\n';
  } else {
    print_totals(totals);
  }
  return to_int(totals.is_well() ? ExitCode::ok : ExitCode::not_well);
}

}  // namespace

void add_gallery_command(CLI::App& sim, int& exit_code) {
  auto* command = sim.add_subcommand(
      "gallery", "Run programs with planted faults, and legal but odd ones, and judge what is said of them.");
  command->footer(
      "Exit code 0: every fault is found with rank and line, quickly, and no legal program has a verdict; 1: not so.\n"
      "Example: lockstep sim gallery point_to_point ddp\n"
      "Example: LOCKSTEP_PYTHON=venv/bin/python lockstep sim gallery --python\n"
      "Example: lockstep sim gallery --generated 500 --seed 7");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("only", arguments->only, "names or kinds; all without")->type_name("NAME");
  command->add_option("--exclude", arguments->exclude, "names or kinds to leave out")->type_name("NAME");
  command
      ->add_option("--generated", arguments->num_generated,
                   "instead: so many random programs with a fault that hinders them")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command->add_option("--healthy", arguments->num_healthy, "and so many without a fault (default: as many)")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", arguments->seed, "of the first generated program")->type_name("NUMBER");
  command->add_flag("--python", arguments->runs_python,
                    "instead: scripts, run by LOCKSTEP_PYTHON or else python3, which needs torch and accelerate");
  command->add_flag("--list", arguments->lists, "print the programs' kinds and names");
  command->add_flag("--json", arguments->as_json, "print one JSON document");
  command->callback([arguments, &exit_code] {
    const bool is_generated = arguments->num_generated > 0 || arguments->num_healthy > 0;
    if (is_generated && (arguments->runs_python || arguments->lists || arguments->as_json || !arguments->only.empty() ||
                         !arguments->exclude.empty())) {
      throw InvalidArgument({.where = "sim gallery",
                             .expected = "either generated programs, or a choice of the gallery's",
                             .got = "both",
                             .fix = "Make two runs of it: one with --generated or --healthy, one with the choice."});
    }
    exit_code = is_generated ? run_generated(*arguments) : run_gallery(*arguments);
  });
}

}  // namespace lockstep::cli
