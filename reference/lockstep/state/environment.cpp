#include "lockstep/state/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/words.h"

namespace lockstep::state {
namespace {

std::string place_of(const std::string& name) { return "environment variable " + name; }

[[noreturn]] void refuse(const std::string& name, const std::string& expected, const std::string& value) {
  throw InvalidArgument({.where = place_of(name), .expected = expected, .got = "'" + value + "'"});
}

}  // namespace

Environment Environment::of_process() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const auto equals = line.find('=');
    if (equals != std::string_view::npos)
      environment.set(std::string(line.substr(0, equals)), std::string(line.substr(equals + 1)));
  }
  return environment;
}

std::optional<std::string> Environment::find(const std::string& name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<int> Environment::number(const std::string& name) const {
  const auto text = find(name);
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) refuse(name, "a whole number", *text);
  return value;
}

bool Environment::flag(const std::string& name, bool otherwise) const {
  const auto text = find(name);
  if (!text) return otherwise;
  const auto word = lower(*text);
  for (const char* yes : {"1", "y", "yes", "t", "true", "on"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"0", "n", "no", "f", "false", "off"}) {
    if (word == no) return false;
  }
  refuse(name, "1 or 0, true or false, yes or no, on or off", *text);
}

std::optional<std::chrono::milliseconds> Environment::seconds(const std::string& name) const {
  const auto text = find(name);
  if (!text) return std::nullopt;
  double value = 0;  // from_chars, since strtod reads by the locale
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const bool is_number = error == std::errc() && end == text->data() + text->size();
  if (!is_number || !(value > 0) || value > 1e9) refuse(name, "a positive number of seconds", *text);
  return std::chrono::milliseconds(std::max(1L, static_cast<long>(value * 1000)));
}

std::optional<std::string> Environment::folder(const std::string& name) const {
  auto path = find(name);
  std::error_code unreadable;
  if (path && !std::filesystem::is_directory(*path, unreadable)) {
    throw FileError({.where = place_of(name), .expected = "an existing folder", .got = "'" + *path + "'"});
  }
  return path;
}

std::optional<log::Level> Environment::log_level(const std::string& name) const {
  const auto word = find(name);
  return word ? std::optional(log::level_from(*word, place_of(name))) : std::nullopt;
}

void Environment::apply_to_process() const {
  clearenv();
  for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
}

const std::vector<KnownVariable>& known_variables() {
  static const std::vector<KnownVariable> variables = {
      {"LOCKSTEP_BACKEND", "communication backend: gloo, nccl, threads, checked[:INNER], or the path of a plug-in"},
      {"LOCKSTEP_CACHE", "folder for downloads and compiler cache (default ~/.cache/lockstep)"},
      {"LOCKSTEP_CHECK", "what the checked backend compares: off, sampled:N, full (the default)"},
      {"LOCKSTEP_CONFORMANCE", "1: set for the ranks of a conformance subject"},
      {"LOCKSTEP_GPU", "ON: set-up and build with GPU support"},
      {"LOCKSTEP_JOB", "job id"},
      {"LOCKSTEP_LOG_LEVEL", "debug, info, warning, error, off"},
      {"LOCKSTEP_PROGRAM", "the lockstep program that the Python tests start"},
      {"LOCKSTEP_PYTHON", "the Python that tests use"},
      {"LOCKSTEP_REPORT_FD", "file descriptor for a rank's report to its launcher"},
      {"LOCKSTEP_RESULTS", "folder for test results"},
      {"LOCKSTEP_SIM", "1: use the checked backend"},
      {"LOCKSTEP_SIM_SPEC", "JSON that `lockstep sim` hands to its ranks"},
      {"LOCKSTEP_SPAWN", "set by debug_launcher for ranks that it spawns"},
      {"LOCKSTEP_TEST_ID", "name of the test that runs"},
      {"LOCKSTEP_TIMEOUT", "seconds that a rank waits for its peers (default 1800)"},
      {"LOCKSTEP_TORCH_ROOT", "LibTorch folder to build against"},
      {"LOCKSTEP_TRACE_DIR", "folder for the event stream, one file per rank"},
      {"LOCKSTEP_WITHOUT_PYTHON", "1: tests leave out what needs a Python with torch"},
  };
  return variables;
}

std::vector<std::string> unknown_variable_warnings(const Environment& environment) {
  std::vector<std::string_view> known;
  for (const auto& variable : known_variables()) known.push_back(variable.name);
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment.variables()) {
    if (!name.starts_with("LOCKSTEP_") || std::ranges::find(known, name) != known.end()) continue;
    warnings.push_back(
        fmt::format("{} is no variable of Lockstep and has no effect; did you mean {}?", name, nearest(name, known)));
  }
  return warnings;
}

}  // namespace lockstep::state
