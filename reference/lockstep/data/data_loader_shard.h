#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "lockstep/base/export.h"
#include "lockstep/data/data_loader.h"
#include "lockstep/state/gradient_state.h"

namespace lockstep::data {

/// A batch that a shard loader hands out, for whoever counts samples.
struct BatchInfo {
  const Batch& items;  ///< indices into the dataset, and how many of them are padding
  std::int64_t epoch;  ///< the loader's `iteration`
  std::int64_t step;   ///< of the pass, from 0; skipped batches count
  bool is_last;
};

/// What the loader calls on the way. All are optional; the first two may block on other ranks.
struct DataLoaderHooks {
  std::function<void()> begin_pass;                           ///< first in every pass: synchronises global generators
  std::function<void(at::Generator&)> synchronize_generator;  ///< then, if the loader has a generator to synchronise
  std::function<void(const BatchInfo&)> on_batch;             ///< before a batch is handed out
};

struct DataLoaderShardOptions {
  std::optional<at::Device> device;  ///< batches are moved here; unset: left where the dataset has them
  bool non_blocking = false;
  std::int64_t skip_batches = 0;         ///< the first ones of every pass, fetched but not handed out
  at::Generator synchronized_generator;  ///< decides the order on all ranks; undefined: none does
  DataLoaderHooks hooks;
  /// For a loader that is a rank's part by other means than BatchSamplerShard: what all ranks take per step. The
  /// remainder is then unknown, since their padding need not stand at the end.
  std::optional<std::int64_t> foreign_total_batch_size;
};

/// A loader that hands one rank its share and tells the gradient state where the data stands.
///
/// It reads one batch ahead, so that during the body of the last step, and only then, `end_of_dataloader()` is true.
/// `remainder()` is, during the whole pass, the number of real samples in the last step of all ranks (0 if there is no
/// padding), or -1 if unknown: with drop_last, or without a batch size.
///
/// A pass, in this order: hooks; flags reset, and the loader registered as the active one; set_epoch(iteration);
/// batches. Once it is exhausted, `iteration` grows by one and the registration ends. A loop that is left early does
/// neither: the next pass repeats its order, and the loader stays active until a pass is exhausted. An empty pass
/// registers and unregisters, and does not count.
///
/// 22 items in batches of 4 on 3 ranks: 2 steps, remainder 10.
///
/// Neither copied nor moved: passes and the gradient state refer to it. The gradient state outlives its passes.
///
/// @clause DATA-017, DATA-065..076, DATA-102, DATA-104, RNG-005, STATE-121..123
/// @source Accelerate, DataLoaderShard
class LOCKSTEP_API DataLoaderShard {
 public:
  DataLoaderShard(DataLoader loader, state::GradientState& gradient_state, DataLoaderShardOptions options = {});
  DataLoaderShard(const DataLoaderShard&) = delete;
  DataLoaderShard& operator=(const DataLoaderShard&) = delete;

  class Pass;
  using Iterator = PassIterator<Pass>;

  /// Begins a pass. Blocks on other ranks if a hook does.
  [[nodiscard]] std::unique_ptr<Pass> pass();
  [[nodiscard]] Iterator begin();
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  /// Steps of a pass, skipped ones included.
  [[nodiscard]] std::int64_t length() const { return loader_.length(); }
  /// Samples of all ranks per step: the loader's batch size with split_batches, times the world size without; unset for
  /// batches of varying size.
  [[nodiscard]] std::optional<std::int64_t> total_batch_size() const;
  [[nodiscard]] std::int64_t total_dataset_length() const { return loader_.dataset().size(); }

  [[nodiscard]] bool end_of_dataloader() const { return status_->end_of_dataloader; }
  [[nodiscard]] std::int64_t remainder() const { return status_->remainder; }
  /// Exhausted passes so far, or what set_epoch said.
  [[nodiscard]] std::int64_t iteration() const { return iteration_; }
  /// The coming pass is that of `epoch`: told to the batch samplers and their sampler; to the dataset too, unless a
  /// sampler inside a shard takes it.
  void set_epoch(std::int64_t epoch);

  /// The inner loader, and its accessors (DATA-075).
  [[nodiscard]] const DataLoader& loader() const { return loader_; }
  [[nodiscard]] Dataset& dataset() const { return loader_.dataset(); }
  [[nodiscard]] std::shared_ptr<Sampler> sampler() const { return loader_.sampler(); }
  [[nodiscard]] const std::shared_ptr<BatchSampler>& batch_sampler() const { return loader_.batch_sampler(); }
  [[nodiscard]] std::optional<std::int64_t> batch_size() const { return loader_.batch_size(); }
  [[nodiscard]] bool drop_last() const { return loader_.drop_last(); }
  [[nodiscard]] const DataLoaderShardOptions& options() const { return options_; }
  [[nodiscard]] std::shared_ptr<const state::DataLoaderStatus> status() const { return status_; }

 private:
  void synchronize();
  void enter_pass();
  void exhaust_pass();
  void leave_pass();
  [[nodiscard]] std::int64_t known_remainder() const;

  DataLoader loader_;
  state::GradientState& gradient_state_;
  DataLoaderShardOptions options_;
  std::shared_ptr<state::DataLoaderStatus> status_ = std::make_shared<state::DataLoaderStatus>();
  std::int64_t iteration_ = 0;
};

/// One time through a rank's share.
class LOCKSTEP_API DataLoaderShard::Pass {
 public:
  explicit Pass(DataLoaderShard& owner);

  /// The next batch, on the loader's device; empty once exhausted.
  std::optional<Value> next();

 private:
  LoadedBatch advance();

  DataLoaderShard& owner_;
  std::unique_ptr<DataLoader::Pass> batches_;
  std::optional<LoadedBatch> ahead_;
  std::int64_t step_ = 0;
  bool over_ = false;
};

}  // namespace lockstep::data
