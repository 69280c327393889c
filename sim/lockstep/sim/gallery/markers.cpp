#include "lockstep/sim/gallery/markers.h"

#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "lockstep/base/error.h"

namespace lockstep::sim::gallery {
namespace {

struct Line {
  const std::string& file;
  int number;
  std::string text;

  [[nodiscard]] bool is_of_script() const { return file.ends_with(".py"); }
};

[[noreturn]] void refuse(const Line& line, const std::string& expected) {
  throw InvalidArgument(
      {.where = line.file + ":" + std::to_string(line.number), .expected = expected, .got = line.text});
}

struct Heading {
  std::string program;
  int num_ranks = 0;
  bool is_legal = false;
};

ScriptHeading script_heading_in(const Line& line) {
  static const std::regex kHeading(R"(# (fault|legal), (\d+) ranks: (\w+))");
  std::smatch match;
  if (!std::regex_match(line.text, match, kHeading)) refuse(line, "# fault, N ranks: KIND or # legal, N ranks: KIND");
  return {.kind = match[3], .num_ranks = std::stoi(match[2]), .is_legal = match[1] == "legal"};
}

std::optional<Heading> heading_in(const Line& line) {
  if (line.is_of_script()) {
    if (line.number != 1) return std::nullopt;
    const auto heading = script_heading_in(line);
    return Heading{.program = std::filesystem::path(line.file).stem(),
                   .num_ranks = heading.num_ranks,
                   .is_legal = heading.is_legal};
  }
  static const std::regex kHeading(R"(LOCKSTEP_(FAULT|LEGAL)\((\w+), (\d+)\) \{)");
  std::smatch match;
  if (!line.text.starts_with("LOCKSTEP_")) return std::nullopt;
  if (!std::regex_match(line.text, match, kHeading)) refuse(line, "LOCKSTEP_FAULT(name, ranks) { or LOCKSTEP_LEGAL");
  return Heading{.program = match[2], .num_ranks = std::stoi(match[3]), .is_legal = match[1] == "LEGAL"};
}

std::optional<Marker> marker_in(const Line& line) {
  static const std::regex kMarker(
      R"((//|#) verdict: rank (\d+) here(: (mismatch|deadlock|rank_failed))?( \1 symmetric)?)");
  const std::string comment = line.is_of_script() ? "#" : "//";
  const auto begin = line.text.find(comment + " verdict");
  if (begin == std::string::npos) return std::nullopt;
  const auto text = line.text.substr(begin);
  std::smatch match;
  if (!std::regex_match(text, match, kMarker)) {
    refuse(line, comment + " verdict: rank R here[: mismatch|deadlock|rank_failed][ " + comment + " symmetric]");
  }
  return Marker{
      .rank = std::stoi(match[2]), .line = line.number, .verdict = match[4], .is_symmetric = match[5].matched};
}

/// Programs one after the other, each with what belongs to it.
class Reader {
 public:
  void take(const Line& line) {
    if (auto heading = heading_in(line)) {
      end_program(line);
      heading_ = std::move(heading);
    } else if (const auto marker = marker_in(line)) {
      add(*marker, line);
    }
  }

  std::map<std::string, Marker> end(const Line& line) {
    end_program(line);
    return std::move(markers_);
  }

 private:
  void add(const Marker& marker, const Line& line) {
    if (!heading_ || heading_->is_legal) refuse(line, "a marker within a fault");
    if (marker.rank >= heading_->num_ranks) refuse(line, "one of the ranks of " + heading_->program);
    if (!markers_.try_emplace(heading_->program, marker).second) refuse(line, "one marker in " + heading_->program);
  }

  void end_program(const Line& next) {
    if (!heading_ || heading_->is_legal || markers_.contains(heading_->program)) return;
    refuse(next, "a marker in " + heading_->program + ", which ends before this line");
  }

  std::optional<Heading> heading_;  // of the program that the lines belong to
  std::map<std::string, Marker> markers_;
};

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw FileError({.where = file, .expected = "a source of the gallery", .got = "a file that cannot be read"});
  return text.str();
}

}  // namespace

std::map<std::string, Marker> parse_markers(std::string_view source, const std::string& file) {
  std::istringstream lines{std::string(source)};
  Reader reader;
  Line line{.file = file, .number = 0, .text = {}};
  while (std::getline(lines, line.text)) {
    ++line.number;
    reader.take(line);
  }
  return reader.end({.file = file, .number = line.number + 1, .text = "the end of the file"});
}

ScriptHeading parse_script_heading(std::string_view source, const std::string& file) {
  return script_heading_in({.file = file, .number = 1, .text = std::string(source.substr(0, source.find('\n')))});
}

std::map<std::string, Marker> read_markers(const std::filesystem::path& file) {
  return parse_markers(text_of(file), file);
}

ScriptHeading read_script_heading(const std::filesystem::path& file) {
  return parse_script_heading(text_of(file), file);
}

}  // namespace lockstep::sim::gallery
