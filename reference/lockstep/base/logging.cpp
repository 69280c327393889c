// spdlog comes from the distribution and is built on its fmt; LibTorch's include folder holds another fmt, so this
// folder is compiled without it.
#include "lockstep/base/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/words.h"

namespace lockstep::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
    case Level::off: break;
  }
  return spdlog::level::off;
}

struct Logger {
  std::mutex mutex;
  Settings settings;
  spdlog::logger out{"lockstep", std::make_shared<spdlog::sinks::stderr_sink_mt>()};

  Logger() { apply({}); }

  void apply(const Settings& next) {
    settings = next;
    out.set_level(to_spdlog(next.level));
    out.set_pattern(next.rank ? "[rank " + std::to_string(*next.rank) + "] %l: %v" : "%l: %v");
  }
};

Logger& logger() {
  static Logger instance;
  return instance;
}

}  // namespace

Level level_from(std::string_view word, const std::string& where) {
  const auto level = lower(word);
  if (level == "debug") return Level::debug;
  if (level == "info") return Level::info;
  if (level == "warning") return Level::warning;
  if (level == "error") return Level::error;
  if (level == "off") return Level::off;
  throw InvalidArgument(
      {.where = where, .expected = "debug, info, warning, error or off", .got = "'" + std::string(word) + "'"});
}

Settings settings() {
  const std::lock_guard lock(logger().mutex);
  return logger().settings;
}

void set_settings(const Settings& settings) {
  const std::lock_guard lock(logger().mutex);
  logger().apply(settings);
}

void write(Level level, std::string_view text) {
  const std::lock_guard lock(logger().mutex);
  logger().out.log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace lockstep::log
