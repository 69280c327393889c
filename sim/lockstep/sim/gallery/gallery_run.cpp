#include "lockstep/sim/gallery/gallery_run.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "lockstep/base/error.h"
#include "lockstep/sim/report/verdict.h"
#include "lockstep/sim/world/launch.h"

namespace lockstep::sim::gallery {
namespace {

constexpr double kMedianLimit = 1.0;
constexpr double kLimit = 3.0;
// A program that stands still without a verdict has not been explained; it need not be waited for for ever.
constexpr auto kRunLimit = std::chrono::seconds(60);
// For what a script imports, seconds on each rank, where they share few processors.
constexpr auto kImportLimit = std::chrono::seconds(60);

struct Ran {
  std::string output;
  bool is_well = false;
};

Ran run_in_shell(const std::string& command) {
  Ran ran;
  std::array<char, 4096> buffer{};
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw RuntimeError({.where = "sim gallery", .expected = "to run " + command});
  while (const auto size = fread(buffer.data(), 1, buffer.size(), pipe)) ran.output.append(buffer.data(), size);
  ran.is_well = pclose(pipe) == 0;
  return ran;
}

std::vector<Listing> programs_of(const std::filesystem::path& executable) {
  const auto command = "'" + executable.string() + "' --list";
  const auto [lines, is_well] = run_in_shell(command);
  if (!is_well) throw RuntimeError({.where = "sim gallery", .expected = "a list from " + command});
  std::vector<Listing> all;
  for (std::size_t begin = 0; begin < lines.size();) {
    const auto end = lines.find('\n', begin);
    const auto json = nlohmann::json::parse(lines.substr(begin, end - begin));
    all.push_back({.name = json.at("name"),
                   .kind = json.at("kind"),
                   .num_ranks = json.at("ranks"),
                   .file = json.at("file").get<std::string>(),
                   .is_legal = json.at("legal")});
    begin = end == std::string::npos ? lines.size() : end + 1;
  }
  return all;
}

std::vector<Listing> scripts_in(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder))
    throw FileError({.where = "sim gallery", .expected = "scripts in " + folder.string(), .got = "no such folder"});
  std::vector<Listing> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto& file = entry.path();
    if (file.extension() != ".py") continue;
    const auto heading = read_script_heading(file);
    all.push_back({.name = file.stem(),
                   .kind = heading.kind,
                   .num_ranks = heading.num_ranks,
                   .file = file,
                   .is_legal = heading.is_legal});
  }
  std::ranges::sort(all, {}, [](const Listing& script) { return std::tie(script.is_legal, script.kind, script.name); });
  return all;
}

bool is_one_of(const Listing& program, const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [&](const auto& word) { return word == program.name || word == program.kind; });
}

void require_known(const std::vector<std::string>& words, const std::vector<Listing>& programs) {
  for (const auto& word : words) {
    if (std::ranges::any_of(programs, [&](const auto& program) { return is_one_of(program, {word}); })) continue;
    throw InvalidArgument(
        {.where = "sim gallery", .expected = "a program's name or its kind", .got = word, .fix = "--list shows them."});
  }
}

const report::RankStanding* standing_of(const report::Verdict& verdict, int rank) {
  const auto found = std::ranges::find(verdict.ranks, rank, &report::RankStanding::rank);
  return found == verdict.ranks.end() ? nullptr : &*found;
}

bool stands_at(const report::RankStanding& standing, const Listing& program, int line) {
  const auto is_marked = [&](const std::optional<Place>& place) {
    return place && place->line == line && std::filesystem::path(place->file).filename() == program.file.filename();
  };
  if (standing.failed_at) return is_marked(standing.failed_at);
  return is_marked(standing.place) || is_marked(standing.waits_at);
}

}  // namespace

std::filesystem::path python_scripts() { return std::filesystem::path(__FILE__).parent_path() / "python"; }

void require_imports(const std::filesystem::path& python) {
  auto [output, is_well] = run_in_shell("'" + python.string() + "' -c 'import torch, accelerate' 2>&1");
  if (is_well) return;
  output.erase(output.find_last_not_of('\n') + 1);
  throw Missing({.where = "sim gallery --python",
                 .expected = "a Python that has torch and accelerate",
                 .got = python.string() + " (" + output.substr(output.rfind('\n') + 1) + ")",
                 .fix = "Set LOCKSTEP_PYTHON to one that has them."});
}

std::vector<Listing> list_programs(const GalleryOptions& options) {
  auto all = options.scripts.empty() ? programs_of(options.program) : scripts_in(options.scripts);
  require_known(options.only, all);
  require_known(options.exclude, all);
  std::erase_if(all, [&](const Listing& program) {
    return (!options.only.empty() && !is_one_of(program, options.only)) || is_one_of(program, options.exclude);
  });
  return all;
}

Judgement judge_verdict(const Listing& program, const std::optional<Marker>& expected, std::string_view verdict_json) {
  const auto verdict = report::parse_verdict(verdict_json);
  Judgement judgement{.program = program,
                      .expected = expected,
                      .seconds = verdict.since_stall_s.value_or(0),
                      .told = std::string(report::to_word(verdict.outcome)) + ": " + verdict.cause};
  if (!expected) {
    judgement.is_found = judgement.is_rank_right = judgement.is_line_right = verdict.outcome == report::Outcome::ok;
    return judgement;
  }
  const bool is_verdict = verdict.outcome == report::Outcome::mismatch ||
                          verdict.outcome == report::Outcome::deadlock ||
                          verdict.outcome == report::Outcome::rank_failed;
  judgement.is_found =
      is_verdict && (expected->verdict.empty() || expected->verdict == report::to_word(verdict.outcome));
  const auto* culprit = standing_of(verdict, expected->rank);
  judgement.is_rank_right = verdict.first == expected->rank || (expected->is_symmetric && culprit != nullptr);
  judgement.is_line_right = culprit != nullptr && stands_at(*culprit, program, expected->line);
  return judgement;
}

Judgement judge(const GalleryOptions& options, const Listing& program) {
  std::optional<Marker> expected;
  if (!program.is_legal) expected = read_markers(program.file).at(program.name);
  const bool is_script = !options.scripts.empty();
  const auto result = run({.num_ranks = program.num_ranks,
                           .argv = {options.program.string(), is_script ? program.file.string() : program.name},
                           .environment = options.environment,
                           .output = RankOutput::kept,
                           .is_quiet = true,
                           .timeout = is_script ? kImportLimit + kRunLimit : kRunLimit});
  return judge_verdict(program, expected, result.verdict);
}

GalleryTotals totals_of(const std::vector<Judgement>& judgements) {
  GalleryTotals totals;
  std::vector<double> seconds;
  for (const auto& judgement : judgements) {
    if (judgement.program.is_legal) {
      ++totals.num_legal;
      totals.num_false += judgement.is_well() ? 0 : 1;
      continue;
    }
    ++totals.num_faults;
    totals.num_found += judgement.is_found ? 1 : 0;
    totals.num_rank_right += judgement.is_rank_right ? 1 : 0;
    totals.num_line_right += judgement.is_line_right ? 1 : 0;
    seconds.push_back(judgement.seconds);
  }
  std::ranges::sort(seconds);
  if (!seconds.empty()) {
    totals.median_s = seconds[seconds.size() / 2];
    totals.slowest_s = seconds.back();
  }
  return totals;
}

bool GalleryTotals::is_well() const {
  return num_found == num_faults && num_rank_right == num_faults && num_line_right == num_faults && num_false == 0 &&
         median_s < kMedianLimit && slowest_s < kLimit;
}

}  // namespace lockstep::sim::gallery
