#pragma once

#include <optional>
#include <string>

namespace lockstep::config {

/// How a model would be compiled. LibTorch has no compiler, so that every backend but "no" is refused; the options are
/// read nevertheless, since configurations carry them.
///
/// @clause KW-031
/// @source Accelerate, TorchDynamoPlugin
struct TorchDynamoPlugin {
  std::optional<std::string> backend;            ///< in any case; else ACCELERATE_DYNAMO_BACKEND, else "no"
  std::optional<std::string> mode;               ///< else ACCELERATE_DYNAMO_MODE, else "default"
  std::optional<bool> fullgraph;                 ///< else ACCELERATE_DYNAMO_USE_FULLGRAPH, else false
  std::optional<bool> dynamic;                   ///< else ACCELERATE_DYNAMO_USE_DYNAMIC, else left to the compiler
  std::optional<std::string> options;            ///< of the backend, as JSON
  bool disable = false;                          ///< compiling does nothing
  std::optional<bool> use_regional_compilation;  ///< else ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION, else false

  bool operator==(const TorchDynamoPlugin&) const = default;
};

}  // namespace lockstep::config
