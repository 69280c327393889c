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
  bool even_batches = true;    ///< ranks get equally many full batches, filled from the head of the epoch
  bool use_seedable_sampler = false;      ///< shuffle by seed and epoch, the same on every rank and in every run
  std::optional<std::int64_t> data_seed;  ///< of the seedable sampler; none: drawn by rank 0
  bool non_blocking = false;              ///< copies to the device may overlap with computation

  bool operator==(const DataLoaderConfiguration&) const = default;
};

}  // namespace lockstep::config
