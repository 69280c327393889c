#include "lockstep/data/data_loader_shard.h"

#include "lockstep/value/tensor_ops.h"

namespace lockstep::data {

DataLoaderShard::DataLoaderShard(DataLoader loader, state::GradientState& gradient_state,
                                 DataLoaderShardOptions options)
    : loader_(std::move(loader)), gradient_state_(gradient_state), options_(std::move(options)) {}

std::unique_ptr<DataLoaderShard::Pass> DataLoaderShard::pass() { return std::make_unique<Pass>(*this); }

DataLoaderShard::Iterator DataLoaderShard::begin() { return Iterator(pass()); }

std::optional<std::int64_t> DataLoaderShard::total_batch_size() const {
  if (options_.foreign_total_batch_size) return options_.foreign_total_batch_size;
  return batch_sampler() ? batch_sampler()->total_batch_size() : std::nullopt;
}

void DataLoaderShard::set_epoch(std::int64_t epoch) {
  iteration_ = epoch;
  std::shared_ptr<Sampler> inside_shard;
  if (batch_sampler()) {
    batch_sampler()->set_epoch(epoch);
    if (const auto wrapped = batch_sampler()->wrapped()) inside_shard = wrapped->sampler();
  } else if (const auto indices = sampler()) {
    indices->set_epoch(epoch);
  }
  const bool taken_inside = inside_shard && inside_shard->set_epoch(epoch);
  if (!taken_inside) dataset().set_epoch(epoch);
}

void DataLoaderShard::synchronize() {
  const auto& hooks = options_.hooks;
  if (hooks.begin_pass) hooks.begin_pass();
  auto& generator = options_.synchronized_generator;
  if (hooks.synchronize_generator && generator.defined()) hooks.synchronize_generator(generator);
}

void DataLoaderShard::enter_pass() {
  *status_ = {.end_of_dataloader = false, .remainder = known_remainder()};
  gradient_state_.add_dataloader(status_);
  set_epoch(iteration_);
}

void DataLoaderShard::exhaust_pass() {
  ++iteration_;
  leave_pass();
}

void DataLoaderShard::leave_pass() { gradient_state_.remove_dataloader(status_); }

// Counted in what a pass visits: the dataset, unless a sampler visits some of it, or some of it twice.
std::int64_t DataLoaderShard::known_remainder() const {
  const auto total = total_batch_size();
  if (!total || *total < 1 || drop_last() || options_.foreign_total_batch_size) return -1;
  return batch_sampler()->num_indices().value_or(total_dataset_length()) % *total;
}

DataLoaderShard::Pass::Pass(DataLoaderShard& owner) : owner_(owner) {
  owner_.synchronize();
  owner_.enter_pass();
  batches_ = owner_.loader_.pass();
  ahead_ = batches_->next_loaded();
  over_ = !ahead_;
  if (over_) owner_.leave_pass();
}

std::optional<Value> DataLoaderShard::Pass::next() {
  while (ahead_) {
    auto current = advance();
    const auto step = step_++;
    if (step < owner_.options_.skip_batches) continue;
    const BatchInfo info{.items = current.items, .epoch = owner_.iteration_, .step = step, .is_last = !ahead_};
    if (owner_.options_.hooks.on_batch) owner_.options_.hooks.on_batch(info);
    return std::move(current.value);
  }
  if (!over_) owner_.exhaust_pass();
  over_ = true;
  return std::nullopt;
}

// Hands out the batch that was read ahead, moved to the device, and reads the next one: only then is it known whether
// this one is the last.
LoadedBatch DataLoaderShard::Pass::advance() {
  auto current = std::move(*ahead_);
  ahead_.reset();
  if (const auto device = owner_.options_.device) {
    current.value = value::send_to_device(current.value, *device, {.non_blocking = owner_.options_.non_blocking});
  }
  ahead_ = batches_->next_loaded();
  if (!ahead_) owner_.status_->end_of_dataloader = true;
  return current;
}

}  // namespace lockstep::data
