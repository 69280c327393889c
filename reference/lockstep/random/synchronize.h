#pragma once

#include <ATen/core/Generator.h>

#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/comm/process_group.h"

namespace lockstep::random {

/// The random state that ranks may be asked to share: the default generator of the CPU (`torch`), that of this rank's
/// device of a kind, or a `generator` of the user's or a sampler's.
enum class RngType { torch, cuda, xla, npu, mlu, sdaa, musa, xpu, hpu, neuron, generator };

/// @throws InvalidArgument  for any other word
/// @clause RNG-002
LOCKSTEP_API RngType rng_type_from(std::string_view word);
LOCKSTEP_API std::string_view to_word(RngType type);

/// Gives every rank the state of rank 0's generator, recorded seed included; from then on equal calls draw equal
/// numbers. All ranks of the group must call it with the same type. In a group of one, or without a group, nothing is
/// exchanged, and what cannot be synchronised is refused all the same.
///
/// @param generator       for RngType::generator, on every rank; of no effect for the others
/// @param rank_generator  for RngType::torch, what stands for the default generator on this rank; undefined: LibTorch's
/// @throws AssertionError  for `generator` when none is given; for a device that this build or this machine lacks.
///                         Nothing has been sent then
/// @clause RNG-003, RNG-004
/// @source Accelerate, synchronize_rng_state
LOCKSTEP_API void synchronize(RngType type, const std::optional<at::Generator>& generator,
                              const comm::ProcessGroup& group, const at::Generator& rank_generator = {});

/// One after the other, in this order.
LOCKSTEP_API void synchronize(const std::vector<RngType>& types, const std::optional<at::Generator>& generator,
                              const comm::ProcessGroup& group, const at::Generator& rank_generator = {});

}  // namespace lockstep::random
