#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/comm/process_group.h"
#include "lockstep/data/prepared_data_loader.h"

namespace lockstep::data {

/// Rows [begin, end) of a batch, for rank `world.rank` of `world.size`: what value::slice does, or a function of the
/// user's for batches whose samples do not lie along dim 0.
using SliceFunction = std::function<Value(const Value& batch, std::int64_t begin, std::int64_t end, World world)>;

struct DataLoaderDispatcherOptions {
  bool split_batches = false;        ///< a step is one of the loader's batches, instead of one for every rank
  bool replicate = false;            ///< every rank gets the whole of one batch: ranks of tensor parallelism
  std::optional<at::Device> device;  ///< batches are sent from and arrive here; unset: where rank 0 has them
  bool non_blocking = false;
  bool use_stateful_dataloader = false;
  std::int64_t skip_batches = 0;  ///< the first steps of every pass, sent but not handed out
  SliceFunction slice;            ///< empty: value::slice
  std::function<void(const BatchInfo&)> on_batch;
};

/// A loader of which rank 0 reads the data and hands every rank its rows; the others never touch the dataset.
///
/// A step's data is one batch with `split_batches`, otherwise world.size batches one behind the other, fewer at the
/// end. Of its N rows rank r gets floor(N / world.size), from row r * floor(N / world.size) on. A last step that does
/// not divide is first filled with the first rows of the pass, so that every rank gets ceil(N / world.size); with
/// drop_last a step that lacks batches is left out. even_batches has no meaning here.
///
/// `remainder()` is -1 until the last step, and there the number N of real rows.
///
/// 20 items in batches of 4 on 3 ranks: the second step has rows 12..19, and ranks get [12 13 14] [15 16 17] [18 19 0].
///
/// Ranks wait for rank 0 in every step, and begin their passes together. Nothing is synchronised: the order is rank
/// 0's. What fails there fails on all ranks.
///
/// @throws InvalidArgument  with split_batches, if the batch size is missing or no multiple of the number of ranks
/// @clause DATA-080..096, DATA-103, DATA-112
/// @source Accelerate, DataLoaderDispatcher
class LOCKSTEP_API DataLoaderDispatcher final : public PreparedDataLoader {
 public:
  /// @param group  the ranks that share the data; none: one process
  DataLoaderDispatcher(DataLoader loader, comm::ProcessGroup group, state::GradientState& gradient_state,
                       DataLoaderDispatcherOptions options = {});

  [[nodiscard]] std::optional<std::int64_t> total_batch_size() const override;
  [[nodiscard]] bool split_batches() const { return options_.split_batches; }
  [[nodiscard]] World world() const { return world_; }
  [[nodiscard]] const DataLoaderDispatcherOptions& options() const { return options_; }

 private:
  class DispatchReader;

  [[nodiscard]] std::int64_t num_steps() const override;
  std::unique_ptr<Reader> begin_reading(std::int64_t first_step) override;
  /// Told to the sampler if it follows epochs, else to the dataset.
  void forward_epoch(std::int64_t epoch) override;
  [[nodiscard]] std::int64_t known_remainder() const override { return -1; }
  [[nodiscard]] std::int64_t batches_per_step() const override;
  [[nodiscard]] bool reads() const override { return world_.rank == 0; }
  [[nodiscard]] std::shared_ptr<PreparedDataLoader> another() const override;

  comm::ProcessGroup group_;
  World world_;
  DataLoaderDispatcherOptions options_;
};

}  // namespace lockstep::data
