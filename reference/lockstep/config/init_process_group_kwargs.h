#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace lockstep::config {

/// How the ranks find each other and how long they wait.
///
/// A backend other than "nccl" has to be the one that fits the device; in a single process it is ignored. "nccl", which
/// stands here when nothing was said, asks for nothing.
///
/// @clause KW-013..015
/// @source Accelerate, InitProcessGroupKwargs
struct InitProcessGroupKwargs {
  std::optional<std::string> backend = "nccl";
  std::optional<std::string> init_method;  ///< only "env://", by which ranks are found anyhow
  std::optional<std::chrono::milliseconds> timeout;

  /// The timeout, or what stands for none: 600 s for nccl, 1800 s for any other backend, none included.
  [[nodiscard]] std::chrono::milliseconds resolved_timeout() const {
    return timeout.value_or(backend == "nccl" ? std::chrono::seconds(600) : std::chrono::seconds(1800));
  }

  bool operator==(const InitProcessGroupKwargs&) const = default;
};

}  // namespace lockstep::config
