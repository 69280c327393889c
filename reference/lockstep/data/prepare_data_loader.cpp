#include "lockstep/data/prepare_data_loader.h"

#include <c10/util/StringUtil.h>

#include "lockstep/base/error.h"
#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/data/seedable_sampler.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

constexpr const char* kWhere = "prepare_data_loader";

void check_split(const DataLoader& loader, World world) {
  auto size = loader.batch_size();
  if (!size && loader.batch_sampler()) size = loader.batch_sampler()->batch_size();
  static_cast<void>(split_size(size, world, kWhere));
}

bool is_rank_sharded(const DataLoader& loader) {
  if (loader.batch_sampler()) return loader.batch_sampler()->is_rank_sharded();
  return loader.sampler() && loader.sampler()->is_rank_sharded();
}

void check_sharding(const DataLoader& loader, World world, const PrepareOptions& options) {
  if (options.already_sharded) {
    if (!options.split_batches) return;
    throw InvalidArgument({.where = kWhere,
                           .expected = "split_batches=false for a loader that is already_sharded",
                           .got = "both",
                           .fix = "Let either the loader or Lockstep divide the data."});
  }
  if (is_rank_sharded(loader)) {
    throw InvalidArgument(
        {.where = kWhere,
         .expected = "a loader over all the data",
         .got = "one whose sampler hands out one rank's part already: sharded again, most samples would not be seen",
         .fix = "Use an ordinary sampler, or pass already_sharded=true to keep this one."});
  }
  if (!loader.batch_sampler()) {
    throw TypeError({.where = kWhere,
                     .expected = c10::str("batches to share among ", world.size, " ranks"),
                     .got = "a loader without batches (batch_size unset)",
                     .fix = "Give the loader a batch_size, a batch_sampler, or a sampler that yields whole batches."});
  }
}

std::int64_t choose_seed(World world, const PrepareOptions& options) {
  if (options.data_seed) return *options.data_seed;
  const auto own = default_seed();
  return options.synchronize_seed && world.size > 1 ? options.synchronize_seed(own) : own;
}

// Only a random order is replaced, and only one that does not have a seed of its own.
DataLoader with_seedable_sampler(const DataLoader& loader, World world, const PrepareOptions& options) {
  const auto random = std::dynamic_pointer_cast<RandomSampler>(loader.sampler());
  if (!random || std::dynamic_pointer_cast<SeedableRandomSampler>(random)) return loader;
  return loader.with_sampler(
      std::make_shared<SeedableRandomSampler>(random->size(), choose_seed(world, options), random->options()));
}

/// The generator that decides the order on all ranks; an empty slot is filled.
at::Generator generator_to_synchronize(const DataLoader& loader) {
  const auto sampler = loader.sampler();
  auto* slot = sampler ? sampler->generator() : nullptr;
  if (slot == nullptr) return {};
  if (!slot->defined()) *slot = random::make_generator(random::draw_seed());
  return *slot;
}

std::optional<std::int64_t> foreign_total_batch_size(const DataLoader& loader, World world) {
  const auto& batches = loader.batch_sampler();
  if (!batches || std::dynamic_pointer_cast<BatchSamplerShard>(batches)) return std::nullopt;
  const auto size = batches->batch_size();
  return size ? std::optional(*size * world.size) : std::nullopt;
}

}  // namespace

std::shared_ptr<DataLoaderShard> prepare_data_loader(DataLoader loader, World world,
                                                     state::GradientState& gradient_state,
                                                     const PrepareOptions& options) {
  checked(world, kWhere);
  if (options.split_batches) check_split(loader, world);
  DataLoaderShardOptions shard{.device = options.device, .non_blocking = options.non_blocking, .hooks = options.hooks};
  if (options.use_seedable_sampler) loader = with_seedable_sampler(loader, world, options);
  if (options.start_thread) loader = loader.with_thread_starter(*options.start_thread);
  if (world.size > 1) {
    check_sharding(loader, world, options);
    if (!options.use_seedable_sampler) shard.synchronized_generator = generator_to_synchronize(loader);
    if (options.already_sharded) {
      shard.foreign_total_batch_size = foreign_total_batch_size(loader, world);
    } else {
      loader = loader.with_batch_sampler(std::make_shared<BatchSamplerShard>(
          loader.batch_sampler(), world,
          ShardOptions{.split_batches = options.split_batches, .even_batches = options.even_batches}));
    }
  }
  return std::make_shared<DataLoaderShard>(std::move(loader), gradient_state, std::move(shard));
}

}  // namespace lockstep::data
