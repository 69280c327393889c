#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/data/data_loader_shard.h"

namespace lockstep::data {

/// Names and defaults are Accelerate's, but for `already_sharded`.
struct PrepareOptions {
  bool split_batches = false;             ///< the loader's batch size is that of all ranks together
  bool even_batches = true;               ///< ranks get equally many full batches, repeating the first samples
  bool use_seedable_sampler = false;      ///< a shuffled loader's order comes from a seed and the epoch
  std::optional<std::int64_t> data_seed;  ///< that seed; unset: the default generator's
  std::optional<at::Device> device;       ///< batches are moved here; unset: device placement off
  bool non_blocking = false;
  bool already_sharded = false;               ///< the loader hands out this rank's part by itself (DistributedSampler)
  std::optional<ThreadStarter> start_thread;  ///< for the loader's workers; unset: the loader's own
  DataLoaderHooks hooks;
  /// With use_seedable_sampler and no data_seed: makes one seed of the ranks' own, so that they shuffle alike. Called
  /// once, here, and blocks on other ranks if it communicates.
  std::function<std::int64_t(std::int64_t)> synchronize_seed;
};

/// Makes of a loader over all the data one that hands this rank its share, for map-style datasets.
///
/// On one rank the batches stay as they are: the last one is not filled. On several, the loader's batch sampler is
/// wrapped in a BatchSamplerShard. A shuffled loader gets one order for all ranks: the sampler's generator (a new one,
/// seeded with one draw of the default generator, if it has none) is the one that `hooks.synchronize_generator` makes
/// equal at the start of each pass. With use_seedable_sampler a RandomSampler becomes a SeedableRandomSampler instead
/// and nothing is synchronised per pass; any other sampler is kept. All other options of the loader are kept.
///
/// @param gradient_state  that of this rank; outlives the result's passes
/// @throws InvalidArgument  with split_batches, if the batch size is missing or no multiple of world.size; if the
///                          loader is sharded by rank already and `already_sharded` was not said; if it was said and
///                          split_batches too; if a seedable sampler cannot be put into the loader's batch sampler
/// @throws TypeError        without batches (batch_size unset) on several ranks
/// @clause DATA-006..013, DATA-017, DATA-018, DATA-097..101, RNG-006, RNG-007
/// @source Accelerate, prepare_data_loader
LOCKSTEP_API std::shared_ptr<DataLoaderShard> prepare_data_loader(DataLoader loader, World world,
                                                                  state::GradientState& gradient_state,
                                                                  const PrepareOptions& options = {});

}  // namespace lockstep::data
