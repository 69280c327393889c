#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/export.h"

namespace lockstep::log {

enum class Level { debug, info, warning, error, off };

/// In any letter case. @throws InvalidArgument  for a word other than debug, info, warning, error, off; `where` it
/// stood
LOCKSTEP_API Level level_from(std::string_view word, const std::string& where = "log level");

/// The process's logger: lines on stderr, "[rank 1] warning: text". It is one of the process-wide items that belong to
/// a rank (state/process_items.h): whoever switches ranks within a process switches these settings with them.
struct Settings {
  Level level = Level::info;
  std::optional<int> rank;  ///< named in each line when set
  bool operator==(const Settings&) const = default;
};
LOCKSTEP_API Settings settings();
LOCKSTEP_API void set_settings(const Settings& settings);

LOCKSTEP_API void write(Level level, std::string_view text);

inline void debug(std::string_view text) { write(Level::debug, text); }
inline void info(std::string_view text) { write(Level::info, text); }
inline void warning(std::string_view text) { write(Level::warning, text); }
inline void error(std::string_view text) { write(Level::error, text); }

}  // namespace lockstep::log
