#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/sim/gallery/generated/case.h"

namespace lockstep::sim::generated {

/// What a verdict document says, in the model's terms; the line is told by the name of the call site. None for a run
/// without verdict ("ok"), for verdicts that no model expects, and for text that is no document.
std::optional<Outcome> outcome_told_by(std::string_view verdict_json);

/// How well one run of a case was explained.
struct Judgement {
  std::uint64_t seed = 0;
  bool is_found = false;       ///< the verdict is one of those expected
  bool is_rank_right = false;  ///< and so is the rank, or that none is named
  bool is_line_right = false;  ///< and that rank's line
  double seconds = 0;          ///< from the stall to the verdict
  std::optional<int> named;    ///< rank that the verdict names, whether it was expected or not
  int planted = 0;             ///< rank that has the fault
  std::string text;            ///< what was planted, expected and told, for the list of misses
};
/// @param verdict_json  none: there was no verdict
Judgement judge(const Case& one, const std::optional<std::string>& verdict_json, double seconds);

/// Counts judgements, and remembers what was missed.
class Summary {
 public:
  void add(const Judgement& judgement);
  /// A case whose program completes: it is not run.
  void add_harmless() { ++num_harmless_; }
  /// A run of a healthy program, in which any verdict is a false one.
  void add_healthy(std::uint64_t seed, const std::optional<std::string>& verdict_json);

  /// Every fault found, rank and line right in at least 99 of 100, and no false verdict.
  [[nodiscard]] bool is_well() const;
  /// A table of totals, then a line for each miss, with its seed.
  [[nodiscard]] std::string to_text() const;

  [[nodiscard]] int num_judged() const { return static_cast<int>(seconds_.size()); }
  [[nodiscard]] double median_s() const;
  [[nodiscard]] double slowest_s() const;

 private:
  [[nodiscard]] bool is_nearly_all(int count) const { return count * 100 >= num_judged() * 99; }

  int num_found_ = 0;
  int num_rank_right_ = 0;
  int num_line_right_ = 0;
  int num_harmless_ = 0;
  int num_healthy_ = 0;
  int num_false_ = 0;
  int num_planted_named_ = 0;
  int num_other_named_ = 0;
  std::vector<double> seconds_;
  std::vector<std::string> misses_;
};

}  // namespace lockstep::sim::generated
