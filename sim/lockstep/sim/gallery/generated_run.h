#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "lockstep/sim/gallery/generated/summary.h"
#include "lockstep/sim/world/launch.h"

namespace lockstep::sim::gallery {

struct GeneratedOptions {
  std::filesystem::path program;                      ///< the lockstep_gallery to run
  Variables environment;                              ///< what its ranks inherit
  int num_faulty = 0;                                 ///< programs with a fault that must be found
  int num_healthy = 0;                                ///< programs without, in which any verdict is a false one
  std::uint64_t seed = 1;                             ///< of the first; the others' count on from it
  std::function<void(const std::string& line)> tell;  ///< gets a line for each program that was missed, as it is found
};

/// Generates programs, runs each on its ranks under the checked backend, and judges what is said of them. A program
/// whose fault does not hinder it is counted as harmless, and another one takes its place.
generated::Summary run_generated_programs(const GeneratedOptions& options);

}  // namespace lockstep::sim::gallery
