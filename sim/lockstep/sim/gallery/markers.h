#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace lockstep::sim::gallery {

/// The verdict that a program's source expects of it:
///
///     rank.world().broadcast(x).wait();  // verdict: rank 1 here: mismatch
///
/// After "here" may stand the word of the verdict, and at the end of the line "// symmetric". In a script # stands for
/// //.
struct Marker {
  int rank = 0;               ///< the culprit
  int line = 0;               ///< of the call that the report has to name for it; from 1
  std::string verdict;        ///< "mismatch", "deadlock" or "rank_failed"; empty: any
  bool is_symmetric = false;  ///< nothing tells the ranks apart: another one may be named, or none

  bool operator==(const Marker&) const = default;
};

/// What a script of the gallery, a program by itself, says of itself in its first line:
///
///     # fault, 3 ranks: order
///     # legal, 2 ranks: asynchrony
struct ScriptHeading {
  std::string kind;
  int num_ranks = 0;
  bool is_legal = false;

  bool operator==(const ScriptHeading&) const = default;
};

/// @throws InvalidArgument  naming file and line, for other words
ScriptHeading parse_script_heading(std::string_view source, const std::string& file);

/// The markers of a source of the gallery, by program. A program that is legal has none.
/// @param file  for messages; one whose name ends in .py is a script, and its program has the name of the file
/// @throws InvalidArgument  naming file and line, when a fault has no marker or two, a legal program or nobody has one,
///                          the culprit is none of the program's ranks, or the words are others
std::map<std::string, Marker> parse_markers(std::string_view source, const std::string& file);

/// The same of a file. @throws FileError  when it cannot be read
std::map<std::string, Marker> read_markers(const std::filesystem::path& file);
ScriptHeading read_script_heading(const std::filesystem::path& file);

}  // namespace lockstep::sim::gallery
