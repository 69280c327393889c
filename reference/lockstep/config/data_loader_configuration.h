#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::config {

/// How prepared data loaders share out a dataset.
///
/// @clause DATA-001
/// @source Accelerate, DataLoaderConfiguration
struct DataLoaderConfiguration {
  bool split_batches = false;  ///< the loader's batch size is the global one, and each batch is cut between the ranks
  std::optional<bool> dispatch_batches;  ///< rank 0 reads for all ranks; unset: if the dataset is iterable, and batches
                                         ///< are put on the device
  bool even_batches = true;              ///< ranks get equally many full batches, filled from the head of the epoch
  bool use_seedable_sampler = false;     ///< shuffle by seed and epoch, the same on every rank and in every run
  std::optional<std::int64_t> data_seed;  ///< of the seedable sampler; none: drawn by rank 0
  bool non_blocking = false;              ///< copies to the device may overlap with computation
  bool use_stateful_dataloader = false;   ///< prepared loaders can save where a pass stands, and go on from there

  bool operator==(const DataLoaderConfiguration&) const = default;
};

}  // namespace lockstep::config
