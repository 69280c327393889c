#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "lockstep/launch/descriptor.h"
#include "lockstep/sim/world/launch.h"
#include "lockstep/sim/world/verdicts.h"

namespace lockstep::sim::test {

/// A folder that goes with the scope.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// This process's variables.
Variables own_environment();

/// sh -c script, with the folder's path as $F, as ranks that are quiet.
LaunchOptions shell(const Folder& folder, std::optional<int> num_ranks, const std::string& script);

/// The standard streams of a launched process.
struct Streams {
  std::string text;  ///< what it can read
  int input = -1;    ///< the descriptor that it reads instead
  int output = -1;   ///< where its stdout goes; -1 for the file that output() reads
};

/// A terminal of its own, and who types at it.
struct Terminal {
  launch::Descriptor keyboard;
  launch::Descriptor terminal;

  Terminal();
  void type(const std::string& text) const;
};

/// `run` in a process of its own, as a user's `lockstep sim` is one: with its output in files, and open to signals.
/// The job is a FakeJobView of the folder.
class Launched {
 public:
  Launched(const Folder& folder, LaunchOptions options, const Streams& streams = {});
  ~Launched();
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The guardian, its only child; 0 while there is none.
  [[nodiscard]] pid_t guardian() const;
  /// Waits for its end, and returns its exit code, 128 + n for a signal.
  int wait();

  /// Of an ended run; what it threw is in `error`.
  [[nodiscard]] VerdictJson verdict() const;
  [[nodiscard]] std::string error() const;
  [[nodiscard]] std::string output() const;
  [[nodiscard]] std::string errors() const;

 private:
  const Folder* folder_;
  pid_t pid_ = 0;
};

/// Whether it holds within 10 s.
bool holds_soon(const std::function<bool()>& condition);

/// Seconds until this process, a subreaper, has no child left; all are reaped. 20 if some live on.
double seconds_until_nothing_lives();

}  // namespace lockstep::sim::test
