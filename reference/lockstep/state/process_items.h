#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <iosfwd>

#include "lockstep/base/export.h"
#include "lockstep/base/logging.h"

namespace lockstep::state {

/// Each item that a process has once although it belongs to a rank. With one process per rank they need no care;
/// whoever runs several ranks in one process, one at a time, swaps them at each switch. This struct is the one table of
/// them.
struct LOCKSTEP_API ProcessItems {
  at::Tensor default_generator;  ///< state of LibTorch's default CPU generator, [5056] bytes
  c10::ScalarType default_dtype = c10::ScalarType::Float;
  bool deterministic_algorithms = false;
  bool deterministic_warn_only = false;  ///< warn of an algorithm that is not, instead of refusing it
  std::streambuf* output = nullptr;      ///< where std::cout writes
  log::Settings logger;

  /// The process's items as they are.
  static ProcessItems capture();
  /// Makes these the process's items.
  void install() const;
};

}  // namespace lockstep::state
