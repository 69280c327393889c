#include "lockstep/launch/rank_report.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace lockstep::launch {

using nlohmann::json;

void write_report(int descriptor, const std::string& kind, const std::string& message) {
  const auto text = json{{"kind", kind}, {"message", message}}.dump(-1, ' ', false, json::error_handler_t::replace);
  std::size_t written = 0;
  while (written < text.size()) {
    const auto count = write(descriptor, text.data() + written, text.size() - written);
    if (count <= 0) return;  // the launcher is gone
    written += static_cast<std::size_t>(count);
  }
}

std::optional<RankFailure> parse_report(int rank, const std::string& text) {
  const auto report = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object()) return std::nullopt;
  return RankFailure{.rank = rank, .kind = report.value("kind", ""), .message = report.value("message", "")};
}

}  // namespace lockstep::launch
