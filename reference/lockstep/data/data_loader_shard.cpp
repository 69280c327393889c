#include "lockstep/data/data_loader_shard.h"

#include "lockstep/data/iterable_dataset_shard.h"
#include "lockstep/data/skip_first_batches.h"
#include "lockstep/value/tensor_ops.h"

namespace lockstep::data {
namespace {

PassOptions pass_options_of(const DataLoaderShardOptions& options) {
  return {.skip_batches = options.skip_batches,
          .use_stateful_dataloader = options.use_stateful_dataloader,
          .on_batch = options.hooks.on_batch};
}

/// The sampler under a batch sampler's wrappers; none if it is not wrapped.
std::shared_ptr<Sampler> sampler_inside(const BatchSampler& outermost) {
  auto inside = outermost.wrapped();
  while (inside && inside->wrapped()) inside = inside->wrapped();
  return inside ? inside->sampler() : nullptr;
}

}  // namespace

// Moves batches to the device as they come, so that a copy that does not block runs beside the reading of the next one.
class DataLoaderShard::ShardReader final : public Reader {
 public:
  ShardReader(std::unique_ptr<DataLoader::Pass> batches, const DataLoaderShardOptions& options)
      : batches_(std::move(batches)), options_(options) {}

  std::optional<LoadedBatch> read() override {
    auto batch = batches_->next_loaded();
    if (batch && options_.device) {
      batch->value = value::send_to_device(batch->value, *options_.device, {.non_blocking = options_.non_blocking});
    }
    return batch;
  }
  LoadedBatch finish(LoadedBatch batch, bool /*is_last*/) override { return batch; }

 private:
  std::unique_ptr<DataLoader::Pass> batches_;
  const DataLoaderShardOptions& options_;
};

DataLoaderShard::DataLoaderShard(DataLoader loader, state::GradientState& gradient_state,
                                 DataLoaderShardOptions options)
    : PreparedDataLoader(std::move(loader), gradient_state, pass_options_of(options)), options_(std::move(options)) {}

std::optional<std::int64_t> DataLoaderShard::total_batch_size() const {
  if (options_.foreign_total_batch_size) return options_.foreign_total_batch_size;
  if (loader().is_iterable()) {
    const auto* shard = dynamic_cast<const IterableDatasetShard*>(loader().iterable_dataset().get());
    return shard != nullptr ? shard->total_batch_size() : batch_size();
  }
  return batch_sampler() ? batch_sampler()->total_batch_size() : std::nullopt;
}

void DataLoaderShard::forward_epoch(std::int64_t epoch) {
  if (batch_sampler()) {
    batch_sampler()->set_epoch(epoch);
  } else if (const auto indices = sampler()) {
    indices->set_epoch(epoch);
  }
  const auto inside = batch_sampler() ? sampler_inside(*batch_sampler()) : nullptr;
  const bool taken_inside = inside && inside->set_epoch(epoch);
  if (!taken_inside) loader().set_dataset_epoch(epoch);
}

void DataLoaderShard::synchronize() {
  const auto& hooks = options_.hooks;
  if (hooks.begin_pass) hooks.begin_pass();
  auto& generator = options_.synchronized_generator;
  if (hooks.synchronize_generator && generator.defined()) hooks.synchronize_generator(generator);
}

std::unique_ptr<PreparedDataLoader::Reader> DataLoaderShard::begin_reading(std::int64_t first_step) {
  const auto rest = first_step == 0 ? loader() : data::skip_first_batches(loader(), first_step);
  return std::make_unique<ShardReader>(rest.pass(), options_);
}

// Counted in what a pass visits: the dataset, unless a sampler visits some of it, or some of it twice. Of a stream,
// what this rank visits: all of it on one rank, full batches on several.
std::int64_t DataLoaderShard::known_remainder() const {
  const auto total = loader().is_iterable() ? batch_size() : total_batch_size();
  if (!total || *total < 1 || drop_last() || options_.foreign_total_batch_size) return -1;
  const auto visited = batch_sampler() ? batch_sampler()->num_indices() : std::nullopt;
  const auto items = visited ? visited : loader().dataset_length();
  return items ? *items % *total : -1;
}

std::shared_ptr<PreparedDataLoader> DataLoaderShard::another() const {
  return std::make_shared<DataLoaderShard>(loader(), gradient_state(), options_);
}

}  // namespace lockstep::data
