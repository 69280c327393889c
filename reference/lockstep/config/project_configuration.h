#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::config {

/// Where a project keeps its files, and how its checkpoints are named.
///
/// @clause KW-028..030
/// @source Accelerate, ProjectConfiguration
struct ProjectConfiguration {
  std::optional<std::string> project_dir;
  std::optional<std::string> logging_dir;  ///< none: project_dir
  bool automatic_checkpoint_naming = false;
  std::optional<std::int64_t> total_limit;  ///< of checkpoints that are kept
  std::int64_t iteration = 0;               ///< of the next checkpoint
  bool save_on_each_node = false;

  /// Moves the project. Its logs stay where they were.
  void set_directories(const std::optional<std::string>& directory) {
    if (!logging_dir) logging_dir = project_dir ? project_dir : directory;
    project_dir = directory;
  }

  [[nodiscard]] std::optional<std::string> resolved_logging_dir() const {
    return logging_dir ? logging_dir : project_dir;
  }

  bool operator==(const ProjectConfiguration&) const = default;
};

}  // namespace lockstep::config
