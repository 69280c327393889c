#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lockstep/launch/descriptor.h"

namespace lockstep::launch {

/// Reads what another process writes into a pipe, and hands it on in whole lines.
class PipeLines {
 public:
  /// Gets one or more whole lines, each with its end.
  using Sink = std::function<void(std::string_view lines)>;

  /// Without a sink the text is only collected.
  explicit PipeLines(Descriptor pipe, Sink sink = nullptr) : pipe_(std::move(pipe)), sink_(std::move(sink)) {}

  /// The end to poll; -1 once the writers have closed theirs.
  [[nodiscard]] int descriptor() const { return pipe_.number(); }
  /// Never waits, and takes so much only that others get their turn.
  void read_available();
  /// Takes what is there, completes the last line, and closes. For a writer that is gone: something that it started may
  /// still hold the pipe, so the pipe's end is not waited for.
  void finish();
  /// What no sink has taken.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void hand_on_lines();

  Descriptor pipe_;
  Sink sink_;
  std::string text_;
};

/// Each line with the label before it: "[rank 0] ".
std::string with_label(std::string_view label, std::string_view lines);
/// The lines without that label, which a rank's own logger may have put there already.
std::string without_label(std::string_view label, std::string_view lines);

}  // namespace lockstep::launch
