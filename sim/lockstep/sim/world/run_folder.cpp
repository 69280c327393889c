#include "lockstep/sim/world/run_folder.h"

#include <unistd.h>

#include <array>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/error.h"
#include "lockstep/sim/report/html_report.h"

namespace lockstep::sim {
namespace {

constexpr std::string_view kAside = ".part";
constexpr auto kVerdictName = "verdict.json";
constexpr auto kReportName = "report.html";

// "rank0.log.part" is left of a run that was killed.
bool is_of_a_run(std::string name) {
  if (name.ends_with(kAside)) name.resize(name.size() - kAside.size());
  static const std::regex log(R"((rank\d+|command)\.log)");
  return name == kVerdictName || name == kReportName || std::regex_match(name, log);
}

}  // namespace

std::string log_name_of(int rank) { return "rank" + std::to_string(rank) + ".log"; }

std::filesystem::path default_run_folder() {
  const auto now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local);
  return std::filesystem::path("lockstep-runs") / (std::string(text.data(), length) + "-" + std::to_string(getpid()));
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError("sim: cannot make the folder " + folder.string() + ": " + error.message());
}

void make_run_folder(const std::filesystem::path& folder) {
  make_folder(folder);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (!is_of_a_run(name)) continue;
    throw InvalidArgument({.where = "--out",
                           .expected = "a folder that holds no run yet",
                           .got = folder.string() + ", where " + name + " is",
                           .fix = "Name another one, or empty it."});
  }
}

void write_run_folder(const std::filesystem::path& folder, const LaunchResult& result) {
  make_folder(folder);
  for (const auto& rank : result.ranks) {
    if (!rank.log.empty()) write_file(folder / log_name_of(rank.rank), rank.log);
  }
  write_file(folder / kReportName, report::to_html(report::parse_verdict(result.verdict)));
  const auto verdict = nlohmann::ordered_json::parse(result.verdict);
  write_file(folder / kVerdictName, verdict.dump(2) + "\n");  // last: who finds it finds the rest
}

}  // namespace lockstep::sim
