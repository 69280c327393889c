#include "lockstep/launch/pipe_lines.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace lockstep::launch {
namespace {

// Together 1 MiB, the most that a pipe holds: what a process wrote before it ended is read in one go.
constexpr int kReadsAtATime = 16;
constexpr std::size_t kBytesAtATime = 65536;

constexpr std::size_t kLongestLine = 1 << 20;  // a writer that never ends a line does not fill our memory

}  // namespace

void PipeLines::read_available() {
  std::array<char, kBytesAtATime> buffer;
  for (int i = 0; i < kReadsAtATime && pipe_; ++i) {
    const auto count = ::read(pipe_.number(), buffer.data(), buffer.size());
    if (count > 0) {
      text_.append(buffer.data(), static_cast<std::size_t>(count));
      if (sink_) hand_on_lines();
      continue;
    }
    if (count == 0) pipe_.reset();  // the other end is closed
    return;
  }
}

void PipeLines::hand_on_lines() {
  const auto last = text_.rfind('\n');
  if (last != std::string::npos) {
    sink_(std::string_view(text_).substr(0, last + 1));
    text_.erase(0, last + 1);
  }
  if (text_.size() < kLongestLine) return;
  sink_(text_ + '\n');
  text_.clear();
}

void PipeLines::finish() {
  read_available();
  pipe_.reset();
  if (!sink_ || text_.empty()) return;
  sink_(text_ + '\n');
  text_.clear();
}

namespace {

// What `change` makes of each line; it gets the line with its end.
template <typename Change>
std::string line_by_line(std::string_view lines, const Change& change) {
  std::string changed;
  while (!lines.empty()) {
    const auto length = std::min(lines.find('\n'), lines.size() - 1) + 1;
    change(lines.substr(0, length), changed);
    lines.remove_prefix(length);
  }
  return changed;
}

}  // namespace

std::string with_label(std::string_view label, std::string_view lines) {
  return line_by_line(lines, [label](std::string_view line, std::string& to) { to.append(label).append(line); });
}

std::string without_label(std::string_view label, std::string_view lines) {
  return line_by_line(lines, [label](std::string_view line, std::string& to) {
    to.append(line.substr(line.starts_with(label) ? label.size() : 0));
  });
}

}  // namespace lockstep::launch
