#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "lockstep/accounting/account.h"
#include "lockstep/base/export.h"

namespace lockstep::random {

struct SeedOptions {
  bool device_specific = false;      ///< each rank its own seed: `seed + process_index`
  std::optional<int> process_index;  ///< this rank's; needed when `device_specific`
  bool deterministic = false;        ///< also switch deterministic algorithms on; false leaves them as they are
  at::Generator rank_generator;      ///< seeded too: what stands for the default one on a rank that is a thread
  std::shared_ptr<accounting::Account> account;  ///< told that the default generators were seeded
};

/// Seeds what draws when no generator is named: LibTorch's default generators, of the CPU and of every CUDA device, and
/// the C library's `rand`, which is the only global generator that the language has. The engines of `<random>` are
/// objects of whoever made them and stay as they are.
///
/// Seed 7, device specific, on 3 ranks: 7, 8, 9.
///
/// @throws InvalidArgument  if `device_specific` and no `process_index` is given
/// @clause RNG-001
/// @source Accelerate, set_seed
LOCKSTEP_API void set_seed(std::int64_t seed, const SeedOptions& options = {});

}  // namespace lockstep::random
