#include "lockstep/data/iterable_dataset_shard.h"

#include <c10/util/StringUtil.h>

#include <iterator>
#include <mutex>

#include "lockstep/base/error.h"
#include "lockstep/data/batch_sampler_shard.h"

namespace lockstep::data {
namespace {

constexpr const char* kWhere = "IterableDatasetShard";

std::shared_ptr<IterableDataset> not_null(std::shared_ptr<IterableDataset> dataset) {
  if (dataset) return dataset;
  throw InvalidArgument({.where = kWhere, .expected = "a dataset", .got = "an empty pointer"});
}

std::int64_t share_size_of(const IterableShardOptions& options, World world) {
  if (options.batch_size < 1) {
    throw InvalidArgument(
        {.where = kWhere, .expected = "batch_size to be positive", .got = c10::str(options.batch_size)});
  }
  return options.split_batches ? split_size(options.batch_size, world, kWhere) : options.batch_size;
}

void seed(const at::Generator& slot, std::int64_t number) {
  auto generator = slot;
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(static_cast<std::uint64_t>(number));
}

}  // namespace

IterableDatasetShard::IterableDatasetShard(std::shared_ptr<IterableDataset> dataset, World world,
                                           IterableShardOptions options)
    : dataset_(not_null(std::move(dataset))),
      world_(checked(world, kWhere)),
      drop_last_(options.drop_last),
      share_size_(share_size_of(options, world_)) {}

void IterableDatasetShard::reset() {
  const auto* slot = dataset_->generator();
  if (!dataset_->follows_epochs() && slot != nullptr && slot->defined()) seed(*slot, epoch_);
  dataset_->reset();
  first_.clear();
  share_.clear();
  place_ = 0;
  exhausted_ = false;
}

std::optional<Value> IterableDatasetShard::next() {
  if (place_ == share_.size() && !take_share()) return std::nullopt;
  return std::move(share_[place_++]);
}

bool IterableDatasetShard::take_share() {
  if (exhausted_) return false;
  auto group = read_group();
  exhausted_ = static_cast<std::int64_t>(group.size()) < total_batch_size();
  if (group.empty() || (exhausted_ && drop_last_)) return false;
  if (first_.empty() && !drop_last_) first_ = group;
  if (exhausted_) fill_from_first(group);
  const auto begin = std::make_move_iterator(group.begin() + world_.rank * share_size_);
  share_.assign(begin, begin + share_size_);
  place_ = 0;
  return true;
}

IterableDatasetShard::Group IterableDatasetShard::read_group() {
  Group group;
  while (static_cast<std::int64_t>(group.size()) < total_batch_size()) {
    auto item = dataset_->next();
    if (!item) break;
    group.push_back(*std::move(item));
  }
  return group;
}

void IterableDatasetShard::fill_from_first(Group& group) const {
  for (std::size_t i = 0; static_cast<std::int64_t>(group.size()) < total_batch_size(); ++i) {
    group.push_back(first_[i % first_.size()]);
  }
}

std::optional<std::int64_t> IterableDatasetShard::size() const {
  const auto items = dataset_->size();
  if (!items) return std::nullopt;
  const auto groups = drop_last_ ? *items / total_batch_size() : (*items + total_batch_size() - 1) / total_batch_size();
  return groups * share_size_;
}

void IterableDatasetShard::set_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  dataset_->set_epoch(epoch);
}

}  // namespace lockstep::data
