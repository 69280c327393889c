#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/sim/place/capture.h"
#include "lockstep/sim/place/debug_file.h"
#include "lockstep/sim/place/module_table.h"
#include "lockstep/sim/place/place.h"

namespace lockstep::sim {

/// Whether a file of source belongs to Lockstep, LibTorch or the standard library, so that what stands in it is not the
/// user's: a frame there is passed over in favour of its caller.
/// @param file  absolute path
bool is_library_source(const std::string& file);

/// Turns captured addresses into places, from the files on disk alone: the process may be dead.
///
/// Slow (milliseconds for a module's first address) and meant for reports. One thread at a time.
class PlaceResolver {
 public:
  /// @param base  files below it are shown relative to it, others by their name and one folder
  explicit PlaceResolver(std::filesystem::path base = std::filesystem::current_path());

  /// The innermost frame of the user's own code. Functions that were inlined count as frames; frames in the system's
  /// libraries, and those of is_library_source(), are passed over unless there is nothing else.
  ///
  /// A module without line tables, and one whose file is gone or was replaced since `modules` was made, gives module
  /// and offset, with a remark that says so. Nothing when no address lies in a module.
  std::optional<Place> resolve(const ModuleTable& modules, const Frames& frames);

 private:
  struct Sighting;

  [[nodiscard]] Sighting look_at(const ModuleAddress& address);
  const DebugFile* file_of(const MappedModule& module);
  [[nodiscard]] std::string shown(const std::string& file) const;

  std::filesystem::path base_;
  // By path, and by stamp: ranks may have loaded different states of one file. nullptr: cannot be read.
  std::map<std::pair<std::string, FileStamp>, std::unique_ptr<DebugFile>> files_;
};

}  // namespace lockstep::sim
