#include "lockstep/data/prepare_data_loader.h"

#include <c10/util/StringUtil.h>

#include "lockstep/base/error.h"
#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/data/iterable_dataset_shard.h"
#include "lockstep/data/seedable_sampler.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

constexpr const char* kWhere = "prepare_data_loader";

[[noreturn]] void refuse(std::string expected, std::string got, std::string fix) {
  throw InvalidArgument(
      {.where = kWhere, .expected = std::move(expected), .got = std::move(got), .fix = std::move(fix)});
}

bool dispatches(const DataLoader& loader, const PrepareOptions& options) {
  const bool dispatch =
      options.dispatch_batches.value_or(options.device && loader.is_iterable() && !options.already_sharded);
  if (dispatch && !options.device) {
    refuse("batches to be put on a device (put_on_device, device_placement) with dispatch_batches=true",
           "dispatch_batches=true and put_on_device=false", "Give a device, or pass dispatch_batches=false.");
  }
  return dispatch;
}

void check_split(const DataLoader& loader, World world) {
  auto size = loader.batch_size();
  if (!size && loader.batch_sampler()) size = loader.batch_sampler()->batch_size();
  static_cast<void>(split_size(size, world, kWhere));
}

bool is_rank_sharded(const DataLoader& loader) {
  if (loader.is_iterable()) {
    const auto shard = std::dynamic_pointer_cast<IterableDatasetShard>(loader.iterable_dataset());
    return shard && shard->is_rank_sharded();
  }
  if (loader.batch_sampler()) return loader.batch_sampler()->is_rank_sharded();
  return loader.sampler() && loader.sampler()->is_rank_sharded();
}

void check_not_sharded(const DataLoader& loader) {
  if (!is_rank_sharded(loader)) return;
  const std::string kind = loader.is_iterable() ? "dataset" : "sampler";
  refuse("a loader over all the data",
         "one whose " + kind + " hands out one rank's part already: sharded again, most samples would not be seen",
         "Use an ordinary " + kind + ", or pass already_sharded=true to keep this one.");
}

void check_batches(const DataLoader& loader, World world) {
  const bool has_batches = loader.is_iterable() ? loader.batch_size().has_value() : loader.batch_sampler() != nullptr;
  if (has_batches) return;
  throw TypeError({.where = kWhere,
                   .expected = c10::str("batches to share among ", world.size, " ranks"),
                   .got = "a loader without batches (batch_size unset)",
                   .fix = "Give the loader a batch_size, a batch_sampler, or a sampler that yields whole batches."});
}

std::int64_t choose_seed(World world, const PrepareOptions& options) {
  if (options.data_seed) return *options.data_seed;
  const auto own = default_seed();
  return options.synchronize_seed && world.size > 1 ? options.synchronize_seed(own) : own;
}

// Only a random order is replaced, and only one that does not have a seed of its own.
DataLoader with_seedable_sampler(const DataLoader& loader, World world, const PrepareOptions& options) {
  if (loader.is_iterable()) return loader;
  const auto random = std::dynamic_pointer_cast<RandomSampler>(loader.sampler());
  if (!random || std::dynamic_pointer_cast<SeedableRandomSampler>(random)) return loader;
  return loader.with_sampler(
      std::make_shared<SeedableRandomSampler>(random->size(), choose_seed(world, options), random->options()));
}

/// The generator that decides the order; a sampler's empty slot is filled with a new one.
at::Generator ensure_generator_of_order(const DataLoader& loader) {
  if (loader.is_iterable()) {
    const auto* slot = loader.iterable_dataset()->generator();
    return slot != nullptr ? *slot : at::Generator();
  }
  const auto sampler = loader.sampler();
  auto* slot = sampler ? sampler->generator() : nullptr;
  if (slot == nullptr) return {};
  if (!slot->defined()) *slot = random::make_generator(random::draw_seed());
  return *slot;
}

std::optional<std::int64_t> foreign_total_batch_size(const DataLoader& loader, World world) {
  if (loader.is_iterable()) {
    if (std::dynamic_pointer_cast<IterableDatasetShard>(loader.iterable_dataset())) return std::nullopt;  // it says so
    return loader.batch_size() ? std::optional(*loader.batch_size() * world.size) : std::nullopt;
  }
  const auto& batches = loader.batch_sampler();
  if (!batches || std::dynamic_pointer_cast<BatchSamplerShard>(batches)) return std::nullopt;
  const auto size = batches->batch_size();
  return size ? std::optional(*size * world.size) : std::nullopt;
}

DataLoader share_of(const DataLoader& loader, World world, const PrepareOptions& options) {
  if (!loader.is_iterable()) {
    return loader.with_batch_sampler(std::make_shared<BatchSamplerShard>(
        loader.batch_sampler(), world,
        ShardOptions{.split_batches = options.split_batches, .even_batches = options.even_batches}));
  }
  auto shard = std::make_shared<IterableDatasetShard>(
      loader.iterable_dataset(), world,
      IterableShardOptions{
          .batch_size = *loader.batch_size(), .drop_last = loader.drop_last(), .split_batches = options.split_batches});
  const auto share_size = shard->share_size();
  return loader.with_iterable_dataset(std::move(shard), share_size);
}

/// @param readers  those that read different data; the others of the world read what one of them does
std::shared_ptr<PreparedDataLoader> make_shard(DataLoader loader, World world, World readers,
                                               state::GradientState& gradient_state, const PrepareOptions& options) {
  DataLoaderShardOptions shard{.device = options.device,
                               .non_blocking = options.non_blocking,
                               .use_stateful_dataloader = options.use_stateful_dataloader,
                               .hooks = options.hooks};
  // Also for a rank alone, if its passes are to be taken up: the state has to say what the order was drawn from.
  const auto generator =
      world.size > 1 || options.use_stateful_dataloader ? ensure_generator_of_order(loader) : at::Generator();
  const bool has_own_order = options.use_seedable_sampler && !loader.is_iterable();
  if (world.size > 1 && !has_own_order) shard.synchronized_generator = generator;
  if (readers.size > 1) {
    check_batches(loader, readers);
    if (options.already_sharded) {
      shard.foreign_total_batch_size = foreign_total_batch_size(loader, readers);
    } else {
      loader = share_of(loader, readers, options);
    }
  }
  return std::make_shared<DataLoaderShard>(std::move(loader), gradient_state, std::move(shard));
}

std::shared_ptr<PreparedDataLoader> make_dispatcher(const DataLoader& loader, World world,
                                                    state::GradientState& gradient_state,
                                                    const PrepareOptions& options) {
  const auto mesh = options.mesh.value_or(MeshSizes{.dp_replicate = world.size});
  const bool replicate = mesh.tp * mesh.cp > 1;
  if (replicate && mesh.dp_replicate * mesh.dp_shard > 1) {
    refuse("dispatch_batches=false where tensor or context parallel ranks stand beside data parallel ones",
           c10::str("dispatch_batches=true, tp ", mesh.tp, ", cp ", mesh.cp, ", dp_replicate ", mesh.dp_replicate,
                    ", dp_shard ", mesh.dp_shard),
           "Let every data parallel rank read its own batches.");
  }
  if (world.size > 1 && (!options.group || options.group.size() != world.size)) {
    refuse("a group of all ranks for dispatch_batches=true", options.group ? "another group" : "none",
           "Pass the world's group.");
  }
  // The state has to say what the order was drawn from; on all ranks, so that their default generators stay alike.
  if (options.use_stateful_dataloader) static_cast<void>(ensure_generator_of_order(loader));
  return std::make_shared<DataLoaderDispatcher>(
      loader.without_generator(), options.group, gradient_state,
      DataLoaderDispatcherOptions{.split_batches = options.split_batches,
                                  .replicate = replicate,
                                  .device = options.device,
                                  .non_blocking = options.non_blocking,
                                  .use_stateful_dataloader = options.use_stateful_dataloader,
                                  .slice = options.slice,
                                  .on_batch = options.hooks.on_batch});
}

}  // namespace

std::shared_ptr<PreparedDataLoader> prepare_data_loader(DataLoader loader, World world,
                                                        state::GradientState& gradient_state,
                                                        const PrepareOptions& options) {
  checked(world, kWhere);
  const bool dispatch = dispatches(loader, options);
  const auto readers = options.mesh ? data_parallel_world(world, *options.mesh) : world;
  if (world.size > 1 && options.already_sharded && (options.split_batches || dispatch)) {
    refuse("split_batches=false and dispatch_batches=false for a loader that is already_sharded",
           options.split_batches ? "split_batches=true" : "dispatch_batches=true",
           "Let either the loader or Lockstep divide the data.");
  }
  if (world.size > 1 && !options.already_sharded) check_not_sharded(loader);
  if (options.split_batches) check_split(loader, dispatch ? world : readers);
  if (options.use_seedable_sampler) loader = with_seedable_sampler(loader, world, options);
  if (options.start_thread) loader = loader.with_thread_starter(*options.start_thread);
  return dispatch ? make_dispatcher(loader, world, gradient_state, options)
                  : make_shard(std::move(loader), world, readers, gradient_state, options);
}

}  // namespace lockstep::data
