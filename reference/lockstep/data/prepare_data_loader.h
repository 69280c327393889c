#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/data/data_loader_dispatcher.h"
#include "lockstep/data/data_loader_shard.h"
#include "lockstep/data/mesh_sizes.h"

namespace lockstep::data {

/// Names and defaults are Accelerate's, but for `already_sharded`.
struct PrepareOptions {
  bool split_batches = false;             ///< the loader's batch size is that of all ranks together
  std::optional<bool> dispatch_batches;   ///< rank 0 reads for all; unset: for iterable datasets that are not
                                          ///< already_sharded, if there is a device
  bool even_batches = true;               ///< ranks get equally many full batches, repeating the first samples
  bool use_seedable_sampler = false;      ///< a shuffled loader's order comes from a seed and the epoch
  std::optional<std::int64_t> data_seed;  ///< that seed; unset: the default generator's
  bool use_stateful_dataloader = false;   ///< the result has state_dict() and load_state_dict(); a shuffling sampler
                                          ///< without a generator gets one, so that its order can be found again
  std::optional<at::Device> device;       ///< batches are moved here; unset: device placement off
  bool non_blocking = false;
  bool already_sharded = false;               ///< the loader hands out this rank's part by itself (DistributedSampler)
  std::optional<MeshSizes> mesh;              ///< of the world; unset: all ranks read different data
  SliceFunction slice;                        ///< how a dispatched batch is cut; empty: in rows
  std::optional<ThreadStarter> start_thread;  ///< for the loader's workers; unset: the loader's own
  DataLoaderHooks hooks;                      ///< a dispatcher calls on_batch alone
  /// With use_seedable_sampler and no data_seed: makes one seed of the ranks' own, so that they shuffle alike. Called
  /// once, here, and blocks on other ranks if it communicates.
  std::function<std::int64_t(std::int64_t)> synchronize_seed;
  comm::ProcessGroup group;  ///< of all ranks: what a dispatcher sends over; none is needed for a world of one
};

/// Makes of a loader over all the data one that hands this rank its share.
///
/// With dispatch_batches that is a DataLoaderDispatcher. Otherwise a DataLoaderShard: on one rank, its batches stay as
/// they are and the last one is not filled; on several, the loader's batch sampler is wrapped in a BatchSamplerShard,
/// or its iterable dataset in an IterableDatasetShard.
///
/// A shuffled loader of which every rank reads a part gets one order for all ranks: the sampler's generator (a new one,
/// seeded with one draw of the default generator, if it has none), or that of an iterable dataset, is the one that
/// `hooks.synchronize_generator` makes equal at the start of each pass. With use_seedable_sampler a RandomSampler
/// becomes a SeedableRandomSampler instead and nothing is synchronised per pass; any other sampler is kept. All other
/// options of the loader are kept, but for the generator of a dispatched one, of which the sampler alone keeps it.
///
/// @param gradient_state  that of this rank; outlives the result's passes
/// @throws InvalidArgument  with split_batches, if the batch size is missing or no multiple of the number of ranks that
///                          read; with dispatch_batches, if there is no device, or a mesh that has data parallel ranks
///                          beside tensor or context parallel ones, or if `group` is not the world's; if the loader is
///                          sharded by rank already and `already_sharded` was not said; if it was said and
///                          split_batches or dispatch_batches too; if a seedable sampler cannot be put into the
///                          loader's batch sampler
/// @throws TypeError        without batches (batch_size unset) on several ranks
/// @clause DATA-004..018, DATA-069, DATA-095, DATA-097..101, RNG-006..009
/// @source Accelerate, prepare_data_loader
LOCKSTEP_API std::shared_ptr<PreparedDataLoader> prepare_data_loader(DataLoader loader, World world,
                                                                     state::GradientState& gradient_state,
                                                                     const PrepareOptions& options = {});

}  // namespace lockstep::data
