#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/data/iterable_dataset.h"

namespace lockstep::data {

struct IterableShardOptions {
  std::int64_t batch_size = 1;  ///< of the loader: a rank's own, or with split_batches that of all ranks together
  bool drop_last = false;       ///< drop what does not fill a batch on every rank
  bool split_batches = false;
};

/// Hands each rank its share of a stream.
///
/// Items are read in groups, one batch for every rank; rank r hands out the r-th part of each group. A short last
/// group is filled with the items of the first one, over and over (with its own if there was no other), or dropped with
/// `drop_last`. Every rank reads the whole stream, so that ranks that see the same items need not communicate; a group
/// is kept in memory, and the first one for the whole pass.
///
/// 10 items in batches of 2 on 3 ranks: rank 1 hands out 2 3 8 9, rank 2 4 5 0 1.
///
/// A dataset that has a generator, but does not follow epochs, has it seeded with the epoch when a pass begins: pass e
/// is the same on every rank and in every run, whatever seed the generator had.
///
/// @throws InvalidArgument  if `batch_size` is not positive; with split_batches, if it is no multiple of world.size
/// @clause DATA-050..060
/// @source Accelerate, IterableDatasetShard
class LOCKSTEP_API IterableDatasetShard final : public IterableDataset {
 public:
  IterableDatasetShard(std::shared_ptr<IterableDataset> dataset, World world, IterableShardOptions options = {});

  void reset() override;
  std::optional<Value> next() override;
  /// Items of this rank: the true number, also with split_batches (DATA-056, accepted outcome).
  [[nodiscard]] std::optional<std::int64_t> size() const override;
  [[nodiscard]] bool follows_epochs() const override { return true; }
  void set_epoch(std::int64_t epoch) override;
  at::Generator* generator() override { return dataset_->generator(); }

  /// Items that a rank hands out of each group: its batch size.
  [[nodiscard]] std::int64_t share_size() const { return share_size_; }
  /// Items of a group: what all ranks together take per step.
  [[nodiscard]] std::int64_t total_batch_size() const { return share_size_ * world_.size; }
  [[nodiscard]] const std::shared_ptr<IterableDataset>& dataset() const { return dataset_; }
  [[nodiscard]] bool is_rank_sharded() const { return world_.size > 1; }

 private:
  using Group = std::vector<Value>;

  bool take_share();
  Group read_group();
  void fill_from_first(Group& group) const;

  std::shared_ptr<IterableDataset> dataset_;
  World world_;
  bool drop_last_;
  std::int64_t share_size_;
  std::int64_t epoch_ = 0;
  Group first_;  // of the pass, for filling the last
  Group share_;  // this rank's part of the current group
  std::size_t place_ = 0;
  bool exhausted_ = true;
};

}  // namespace lockstep::data
