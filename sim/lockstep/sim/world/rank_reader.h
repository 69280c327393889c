#pragma once

#include <poll.h>

#include <deque>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/launch/pipe_lines.h"
#include "lockstep/sim/world/launch.h"
#include "lockstep/sim/world/rank_starter.h"
#include "lockstep/sim/world/user_output.h"

namespace lockstep::sim {

/// What one rank writes: shown line by line, or kept in its file, and the end of it remembered.
class RankReader {
 public:
  /// @param is_held  whether what comes now is kept from the user
  /// @throws FileError  if there is to be a file and it cannot be opened
  RankReader(int rank, const LaunchOptions& options, RankStreams streams, UserOutput& user,
             std::function<bool()> is_held);

  void add_to(std::vector<pollfd>& waiting) const;
  void read_available();
  /// For a rank that is gone: takes the rest, and gives the file its name.
  void finish();

  /// The end of what it wrote, at most 1 MiB.
  [[nodiscard]] const std::string& log() const { return log_; }
  /// So much at its end was not shown.
  [[nodiscard]] std::size_t num_bytes_held() const { return num_bytes_held_; }
  /// The last 20 lines of stderr.
  [[nodiscard]] const std::deque<std::string>& last_errors() const { return last_errors_; }

 private:
  void take(int descriptor, std::string_view lines);
  void keep_errors(std::string_view lines);

  std::string name_;
  std::string label_;
  std::string shown_label_;
  const LaunchOptions* options_;
  UserOutput* user_;
  std::function<bool()> is_held_;
  std::ofstream file_;
  std::string log_;
  std::size_t num_bytes_held_ = 0;
  std::deque<std::string> last_errors_;
  launch::PipeLines output_;
  launch::PipeLines errors_;
};

}  // namespace lockstep::sim
