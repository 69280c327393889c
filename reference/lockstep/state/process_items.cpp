#include "lockstep/state/process_items.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

#include <iostream>
#include <mutex>

namespace lockstep::state {

ProcessItems ProcessItems::capture() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return {.default_generator = generator.get_state(),
          .default_dtype = c10::get_default_dtype_as_scalartype(),
          .deterministic_algorithms = at::globalContext().deterministicAlgorithms(),
          .deterministic_warn_only = at::globalContext().deterministicAlgorithmsWarnOnly(),
          .output = std::cout.rdbuf(),
          .logger = log::settings()};
}

void ProcessItems::install() const {
  auto generator = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard lock(generator.mutex());
    generator.set_state(default_generator);
  }
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(default_dtype));
  at::globalContext().setDeterministicAlgorithms(deterministic_algorithms, deterministic_warn_only);
  std::cout.rdbuf(output);
  log::set_settings(logger);
}

}  // namespace lockstep::state
