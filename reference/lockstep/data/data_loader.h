#pragma once

#include <ATen/core/Generator.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "lockstep/base/export.h"
#include "lockstep/data/batch_sampler.h"
#include "lockstep/data/collate.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/iterable_dataset.h"
#include "lockstep/data/pass_iterator.h"
#include "lockstep/data/skip_batch_sampler.h"
#include "lockstep/data/worker_pool.h"

namespace lockstep::data {

/// What a loader's `sampler` may be: nothing, a sampler of indices, or one that yields whole batches.
using AnySampler = std::variant<std::monostate, std::shared_ptr<Sampler>, std::shared_ptr<BatchSampler>>;

/// Names and defaults are PyTorch's.
struct DataLoaderOptions {
  std::optional<std::int64_t> batch_size = 1;   ///< unset: no batches, items one by one as the dataset gives them
  bool shuffle = false;                         ///< RandomSampler instead of SequentialSampler
  AnySampler sampler;                           ///< excludes shuffle; one of whole batches needs an unset batch_size
  std::shared_ptr<BatchSampler> batch_sampler;  ///< excludes batch_size, shuffle, sampler and drop_last
  bool drop_last = false;                       ///< leave out a short last batch
  int num_workers = 0;                          ///< threads that get items and collate; 0: the caller's own
  std::optional<int> prefetch_factor;           ///< batches per worker that are fetched ahead, 2 if unset
  at::Generator generator;               ///< for shuffling and for the workers' seeds; undefined: the default one
  Collate collate;                       ///< empty: default_collate
  std::chrono::milliseconds timeout{0};  ///< the longest wait for a batch from the workers; 0: any
  std::function<void(const WorkerInfo&)> worker_init;
  ThreadStarter start_thread = start_plain_thread;
};

/// A batch and what is in it.
struct LoadedBatch {
  Value value;
  Batch items;  ///< without indices, if the dataset is iterable
};

/// Hands out a dataset batch by batch.
///
///     DataLoader loader(dataset, {.batch_size = 32, .shuffle = true, .num_workers = 2});
///     for (auto& batch : loader) step(batch[0].tensor(), batch[1].tensor());
///
/// Batches come in the sampler's order, whatever the number of workers. What `get` or `collate` throws on a worker is
/// thrown at the batch to which it belongs; a failed `get` as DatasetError, which has the index. Threads are those of a
/// pass: they end with it, also when the loop is left early or by an exception.
///
/// Every pass draws one number from `generator` (or the default one) before its sampler draws, as PyTorch's does, so
/// that both shuffle alike after the same seed. Copies share dataset and samplers. A sampler has one cursor: beginning
/// a pass ends the one before, whose next() then throws RuntimeError.
///
/// An iterable dataset decides its order itself: it takes neither shuffle nor a sampler. Nor does it take workers: in
/// PyTorch each worker has a copy of the stream and all of it is seen several times, unless the dataset divides itself;
/// threads would tear one stream apart. A dataset that wants to read ahead does so within its `next()`.
///
/// @throws InvalidArgument  for options that exclude each other or are out of range; the message names them
/// @clause DATA-008, DATA-013
/// @source PyTorch, torch.utils.data.DataLoader
class LOCKSTEP_API DataLoader {
 public:
  /// @param dataset  anything with size() and get(index), by value or as a shared_ptr (make_dataset)
  template <typename Source>
  requires requires(Source&& source) { make_dataset(std::forward<Source>(source)); }
  explicit DataLoader(Source&& dataset, DataLoaderOptions options = {})
      : DataLoader(make_dataset(std::forward<Source>(dataset)), std::move(options)) {}
  explicit DataLoader(std::shared_ptr<Dataset> dataset, DataLoaderOptions options = {});
  /// @param dataset  anything with reset() and next(), by value or as a shared_ptr (make_iterable_dataset)
  template <typename Source>
  requires requires(Source&& source) { make_iterable_dataset(std::forward<Source>(source)); }
  explicit DataLoader(Source&& dataset, DataLoaderOptions options = {})
      : DataLoader(make_iterable_dataset(std::forward<Source>(dataset)), std::move(options)) {}
  explicit DataLoader(std::shared_ptr<IterableDataset> dataset, DataLoaderOptions options = {});

  class Pass;
  using Iterator = PassIterator<Pass>;

  /// Begins a pass, which `next()` of the result goes through.
  [[nodiscard]] std::unique_ptr<Pass> pass() const;
  [[nodiscard]] Iterator begin() const { return Iterator(pass()); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  /// Batches of a pass; items, without batches.
  /// @throws TypeError  for an iterable dataset that does not know its size
  [[nodiscard]] std::int64_t length() const;
  /// Items of the dataset; unset if an iterable one does not know.
  [[nodiscard]] std::optional<std::int64_t> dataset_length() const;
  [[nodiscard]] bool is_iterable() const { return stream_ != nullptr; }
  /// The map-style dataset. @throws TypeError  if it is iterable
  [[nodiscard]] Dataset& dataset() const;
  /// The iterable dataset. @throws TypeError  if it is map-style
  [[nodiscard]] const std::shared_ptr<IterableDataset>& iterable_dataset() const;
  /// What a pass hands out for this batch: its items, collated.
  [[nodiscard]] LoadedBatch load(Batch batch) const;
  /// Tells the dataset the epoch, if it follows epochs.
  void set_dataset_epoch(std::int64_t epoch) const;
  /// What batches are made by; none without batches. A sampler of whole batches stands here too.
  [[nodiscard]] const std::shared_ptr<BatchSampler>& batch_sampler() const { return batch_sampler_; }
  /// What the indices come from, seen through batch samplers; none if a batch sampler makes them up.
  [[nodiscard]] std::shared_ptr<Sampler> sampler() const;
  /// As given: unset with a batch_sampler, even if that one has a size (PyTorch's DataLoader.batch_size).
  [[nodiscard]] std::optional<std::int64_t> batch_size() const { return options_.batch_size; }
  [[nodiscard]] bool drop_last() const { return batch_sampler_ ? batch_sampler_->drop_last() : options_.drop_last; }
  [[nodiscard]] int num_workers() const { return options_.num_workers; }
  [[nodiscard]] const DataLoaderOptions& options() const { return options_; }

  /// The same loader, all else kept, over other batches.
  [[nodiscard]] DataLoader with_batch_sampler(std::shared_ptr<BatchSampler> other) const;
  /// The same loader, all else kept, in another order. The original and its samplers stay as they are.
  /// @throws InvalidArgument  if the batch sampler is one that cannot be made over another sampler
  [[nodiscard]] DataLoader with_sampler(std::shared_ptr<Sampler> other) const;
  /// The same loader, all else kept, over another stream, in batches of another size if one is given.
  [[nodiscard]] DataLoader with_iterable_dataset(std::shared_ptr<IterableDataset> other,
                                                 std::optional<std::int64_t> batch_size = std::nullopt) const;
  /// The same loader without the first batches of its stream, which are read but not handed out; on top of those that
  /// this one skips. @throws TypeError  for a map-style dataset, whose batch sampler can be changed instead
  [[nodiscard]] DataLoader with_skip(Skip skip) const;
  /// The same loader, which draws the number of each pass from the default generator. Its sampler keeps its own.
  [[nodiscard]] DataLoader without_generator() const;
  /// The same loader, its workers started another way.
  [[nodiscard]] DataLoader with_thread_starter(ThreadStarter starter) const;

 private:
  [[nodiscard]] Value collate(const std::vector<Value>& items) const;

  std::shared_ptr<Dataset> dataset_;         // the one,
  std::shared_ptr<IterableDataset> stream_;  // or the other
  std::shared_ptr<Skip> skip_;               // of the stream; shared with the passes, which end it
  DataLoaderOptions options_;
  std::shared_ptr<Sampler> index_sampler_;  // without batches
  std::shared_ptr<BatchSampler> batch_sampler_;
  std::shared_ptr<std::uint64_t> num_passes_ = std::make_shared<std::uint64_t>(0);  // begun; the last one is in force
};

/// One time through a loader's data.
class LOCKSTEP_API DataLoader::Pass {
 public:
  explicit Pass(DataLoader loader);

  /// The next batch; empty at the end. After an exception the pass is over.
  std::optional<Value> next();
  std::optional<LoadedBatch> next_loaded();

 private:
  using Pool = WorkerPool<Batch, LoadedBatch>;

  std::unique_ptr<Pool> start_workers(std::int64_t seed);
  std::optional<Batch> next_items();
  std::optional<LoadedBatch> load_next();
  std::optional<LoadedBatch> read_next();
  void begin_stream();

  DataLoader loader_;
  std::uint64_t number_;
  bool reading_ = false;  // the stream's pass begins with its first batch: who reads nothing leaves it alone
  std::unique_ptr<Pool> workers_;
  bool over_ = false;
};

}  // namespace lockstep::data
