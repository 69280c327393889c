#pragma once

#include <string>
#include <vector>

#include "lockstep/sim/report/verdict.h"

namespace lockstep::sim::report {

/// The calls of a mismatch side by side: a row per class of ranks that call the same, a column per field.
struct Comparison {
  struct Field {
    std::string name;  ///< "operation", "tensors", "reduction", "peer", "tag", "names"
    bool differs = false;
  };
  struct Row {
    std::vector<int> ranks;
    std::vector<std::string> cells;  ///< one per field
    std::string place;               ///< places that differ are no mismatch: they stand apart
  };

  std::vector<Field> fields;  ///< those that some rank has
  std::vector<Row> rows;

  /// "They differ in operation and reduction."; empty if no field does.
  [[nodiscard]] std::string sentence() const;
};

/// Of the ranks that have made a call of the group and number of the mismatch; without any, an empty comparison.
Comparison compare_calls(const Verdict& verdict);

}  // namespace lockstep::sim::report
