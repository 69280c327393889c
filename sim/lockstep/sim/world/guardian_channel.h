#pragma once

#include <nlohmann/json.hpp>

#include "lockstep/launch/descriptor.h"

namespace lockstep::sim {

/// The socket between the process that the user sees and the guardian.
///
/// From the guardian come JSON documents, one a line: {"tell": text}, {"hold": text}, {"await_silence": true} (answered
/// by kSilence), {"ending": true} (ranks end because of the verdict from now on), {"usage": message}, {"error":
/// message} and, last, {"result": ...}. To it go single bytes: the number of a signal, kGoOn or kSilence. Its end says
/// that the other process is gone: nothing is as sure, since the system closes it however a process ends.
struct GuardianChannel {
  launch::Descriptor visible;  ///< reading never waits
  launch::Descriptor guardian;

  /// @throws RuntimeError  when this process may open no more
  static GuardianChannel make();
};

constexpr char kGoOn = 0;       ///< the user has seen enough of ranks that are held
constexpr char kSilence = 127;  ///< ranks write nothing any more, or have written for long enough; no signal's number

void send_to_visible(int guardian_end, const nlohmann::ordered_json& message);

}  // namespace lockstep::sim
