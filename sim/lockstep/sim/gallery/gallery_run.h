#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/sim/gallery/markers.h"
#include "lockstep/sim/world/launch.h"

namespace lockstep::sim::gallery {

/// A program of the gallery, as `lockstep_gallery --list` or the heading of a script tells of it.
struct Listing {
  std::string name;
  std::string kind;
  int num_ranks = 0;
  std::filesystem::path file;
  bool is_legal = false;
};

/// How one program's run was explained.
struct Judgement {
  Listing program;
  std::optional<Marker> expected;  ///< none for a legal program
  bool is_found = false;           ///< a fault has a verdict (the expected one, where the source names it)
  bool is_rank_right = false;
  bool is_line_right = false;
  double seconds = 0;  ///< from the stall to the verdict
  std::string told;    ///< the verdict and its cause

  [[nodiscard]] bool is_well() const { return is_found && is_rank_right && is_line_right; }
};

struct GalleryOptions {
  std::filesystem::path program;     ///< the lockstep_gallery to run, or the Python that runs the scripts
  std::filesystem::path scripts;     ///< the folder of the scripts; empty: lockstep_gallery's own programs are run
  Variables environment;             ///< what its ranks inherit
  std::vector<std::string> only;     ///< names or kinds; empty: all
  std::vector<std::string> exclude;  ///< names or kinds
};

/// The folder of the gallery's scripts, among the sources that this was built from.
std::filesystem::path python_scripts();

/// @throws Missing  when this Python has not what the scripts import
void require_imports(const std::filesystem::path& python);

/// The programs that the options select. @throws InvalidArgument  for a name or kind that there is not
std::vector<Listing> list_programs(const GalleryOptions& options);

/// Runs one program on its ranks and judges what the simulator says of it.
Judgement judge(const GalleryOptions& options, const Listing& program);

/// Judges a verdict document. A fault has to be found, the rank of its marker named as the first one (or, where nothing
/// tells the ranks apart, be among those named), and that rank's place be the marker's line. A legal program has to end
/// without verdict.
Judgement judge_verdict(const Listing& program, const std::optional<Marker>& expected, std::string_view verdict_json);

/// The table's last lines: found, rank right, line right, median and largest time; and whether all is well: every fault
/// found and right, the median under 1 s and none over 3 s, and no verdict on a legal program.
struct GalleryTotals {
  int num_faults = 0;
  int num_found = 0;
  int num_rank_right = 0;
  int num_line_right = 0;
  int num_legal = 0;
  int num_false = 0;
  double median_s = 0;
  double slowest_s = 0;

  [[nodiscard]] bool is_well() const;
};
GalleryTotals totals_of(const std::vector<Judgement>& judgements);

}  // namespace lockstep::sim::gallery
