#include "lockstep/sim/world/run_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "lockstep/base/error.h"
#include "lockstep/launch/descriptor.h"
#include "lockstep/sim/report/html_report.h"

namespace lockstep::sim {
namespace {

constexpr std::string_view kAside = ".part";
constexpr auto kVerdictName = "verdict.json";
constexpr auto kReportName = "report.html";

[[noreturn]] void fail(const std::filesystem::path& path) {
  throw FileError("sim: cannot write " + path.string() + ": " + std::strerror(errno));
}

void flush_to_disk(const std::filesystem::path& path, int flags) {
  const launch::Descriptor file(open(path.c_str(), flags | O_CLOEXEC));
  if (!file || fsync(file.number()) != 0) fail(path);
}

// "rank0.log.part" is left of a run that was killed.
bool is_of_a_run(std::string name) {
  if (name.ends_with(kAside)) name.resize(name.size() - kAside.size());
  static const std::regex log(R"((rank\d+|command)\.log)");
  return name == kVerdictName || name == kReportName || std::regex_match(name, log);
}

}  // namespace

void put_in_place(const std::filesystem::path& aside, const std::filesystem::path& path) {
  flush_to_disk(aside, O_WRONLY);
  if (std::rename(aside.c_str(), path.c_str()) != 0) fail(path);
  const auto folder = path.parent_path();
  flush_to_disk(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path aside = path.string() + std::string(kAside);
  std::ofstream file(aside, std::ios::binary);
  file << content;
  file.close();
  if (!file) fail(aside);
  put_in_place(aside, path);
}

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
