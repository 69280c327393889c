#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lockstep/base/export.h"
#include "lockstep/data/prepared_data_loader.h"

namespace lockstep::data {

/// What the loader calls on the way. All are optional; the first two may block on other ranks.
struct DataLoaderHooks {
  std::function<void()> begin_pass;                           ///< first in every pass: synchronises global generators
  std::function<void(at::Generator&)> synchronize_generator;  ///< then, if the loader has a generator to synchronise
  std::function<void(const BatchInfo&)> on_batch;             ///< before a batch is handed out
};

struct DataLoaderShardOptions {
  std::optional<at::Device> device;  ///< batches are moved here; unset: left where the dataset has them
  bool non_blocking = false;
  bool use_stateful_dataloader = false;
  std::int64_t skip_batches = 0;         ///< the first ones of every pass, fetched but not handed out
  at::Generator synchronized_generator;  ///< decides the order on all ranks; undefined: none does
  DataLoaderHooks hooks;
  /// For a loader that is a rank's part by other means than BatchSamplerShard: what all ranks take per step. The
  /// remainder is then unknown, since their padding need not stand at the end.
  std::optional<std::int64_t> foreign_total_batch_size;
};

/// A loader of which every rank reads its own part.
///
/// `remainder()` is, during the whole pass, the number of real samples in the last step of all ranks (0 if there is no
/// padding), or -1 if unknown: with drop_last, without a batch size, or for a stream of unknown size. It is 0 for a
/// stream that is shared out (IterableDatasetShard), whose padding is not told apart.
///
/// Its hooks are called before a pass begins as PreparedDataLoader says.
///
/// 22 items in batches of 4 on 3 ranks: 2 steps, remainder 10.
///
/// @clause DATA-017, DATA-065..076, DATA-102, DATA-104, RNG-005, STATE-121..123
/// @source Accelerate, DataLoaderShard
class LOCKSTEP_API DataLoaderShard final : public PreparedDataLoader {
 public:
  DataLoaderShard(DataLoader loader, state::GradientState& gradient_state, DataLoaderShardOptions options = {});

  [[nodiscard]] std::optional<std::int64_t> total_batch_size() const override;
  [[nodiscard]] const DataLoaderShardOptions& options() const { return options_; }

 private:
  class ShardReader;

  [[nodiscard]] std::int64_t num_steps() const override { return loader().length(); }
  void synchronize() override;
  std::unique_ptr<Reader> begin_reading(std::int64_t first_step) override;
  /// Told to the batch samplers and their sampler; to the dataset too, unless a sampler inside a shard takes it.
  void forward_epoch(std::int64_t epoch) override;
  [[nodiscard]] std::int64_t known_remainder() const override;
  [[nodiscard]] std::shared_ptr<PreparedDataLoader> another() const override;

  DataLoaderShardOptions options_;
};

}  // namespace lockstep::data
