#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lockstep/base/export.h"

namespace lockstep::random {

/// A new CPU generator with this seed. Negative seeds count from the top of 64 bits, as in PyTorch.
LOCKSTEP_API at::Generator make_generator(std::int64_t seed);

/// The CPU generator that draws when none is given. It belongs to the process: ranks that are threads of one process
/// share it, unless whoever switches between them switches its state too. What a rank draws for itself should come from
/// a generator of its own.
LOCKSTEP_API at::Generator default_generator();

/// One draw of a non-negative int64, by which PyTorch and Accelerate derive a new seed:
/// `torch.empty((), dtype=torch.int64).random_().item()`. The generator moves on.
/// @param generator  undefined: the default one
LOCKSTEP_API std::int64_t draw_seed(const at::Generator& generator = {});

/// Everything that decides the coming draws, and the recorded seed.
/// @return [bytes], uint8, on the CPU; 5056 bytes of a CPU generator, 16 of a CUDA one
LOCKSTEP_API at::Tensor get_state(const at::Generator& generator);

/// Makes `generator` continue where the generator that gave `state` stood. It then also reports that one's seed: what
/// is seeded "by the current seed" later on, such as a seedable sampler, follows the source.
/// @clause RNG-004
LOCKSTEP_API void set_state(at::Generator generator, const at::Tensor& state);

}  // namespace lockstep::random
