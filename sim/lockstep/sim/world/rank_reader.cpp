#include "lockstep/sim/world/rank_reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/error.h"
#include "lockstep/sim/world/run_folder.h"

namespace lockstep::sim {
namespace {

constexpr std::size_t kKeptBytes = 1 << 20;
constexpr std::size_t kKeptErrors = 20;

std::string label_of(int rank) { return "[rank " + std::to_string(rank) + "] "; }

std::string coloured(const std::string& label, int rank) {
  static constexpr std::array colours = {36, 33, 35, 32, 34, 96, 93, 95, 92, 94};  // no red: that is for what is wrong
  const int code = colours[static_cast<std::size_t>(rank) % colours.size()];
  return "\033[" + std::to_string(code) + "m" + label + "\033[0m";
}

}  // namespace

RankReader::RankReader(int rank, const LaunchOptions& options, RankStreams streams, UserOutput& user,
                       std::function<bool()> is_held)
    : name_(options.num_ranks ? log_name_of(rank) : "command.log"),
      label_(options.num_ranks ? label_of(rank) : ""),
      shown_label_(options.colour ? coloured(label_, rank) : label_),
      options_(&options),
      user_(&user),
      is_held_(std::move(is_held)),
      output_(std::move(streams.output), [this](std::string_view lines) { take(STDOUT_FILENO, lines); }),
      errors_(std::move(streams.errors), [this](std::string_view lines) {
        keep_errors(lines);
        take(STDERR_FILENO, lines);
      }) {
  if (options.output != RankOutput::files) return;
  const auto path = options.log_folder / (name_ + ".part");
  file_.open(path, std::ios::binary);
  if (!file_) throw FileError("sim: cannot write " + path.string());
}

void RankReader::add_to(std::vector<pollfd>& waiting) const {
  for (const auto* lines : {&output_, &errors_}) {
    if (lines->descriptor() >= 0) waiting.push_back({.fd = lines->descriptor(), .events = POLLIN});
  }
}

void RankReader::read_available() {
  output_.read_available();
  errors_.read_available();
}

void RankReader::finish() {
  output_.finish();
  errors_.finish();
  if (!file_.is_open()) return;
  file_.close();
  const auto path = options_->log_folder / name_;
  put_in_place(path.string() + ".part", path);
}

void RankReader::take(int descriptor, std::string_view lines) {
  if (file_.is_open()) {
    file_ << lines << std::flush;
    return;
  }
  if (is_held_()) {
    num_bytes_held_ += lines.size();
  } else if (options_->output != RankOutput::kept) {
    user_->write(options_->stdout_to_stderr ? STDERR_FILENO : descriptor,
                 launch::with_label(shown_label_, launch::without_label(label_, lines)));
  }
  log_ += lines;
  if (log_.size() > 2 * kKeptBytes) log_.erase(0, log_.size() - kKeptBytes);
  num_bytes_held_ = std::min(num_bytes_held_, log_.size());
}

void RankReader::keep_errors(std::string_view lines) {
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    last_errors_.emplace_back(lines.substr(0, end));
    if (last_errors_.size() > kKeptErrors) last_errors_.pop_front();
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
  }
}

}  // namespace lockstep::sim
