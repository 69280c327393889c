#include "lockstep/data/data_loader_dispatcher.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/data/dispatch.h"
#include "lockstep/data/skip_first_batches.h"
#include "lockstep/value/tensor_ops.h"

namespace lockstep::data {
namespace {

constexpr const char* kWhere = "DataLoaderDispatcher";

Value slice_rows(const Value& batch, std::int64_t begin, std::int64_t end, World /*world*/) {
  return value::slice(batch, begin, end);
}

std::optional<std::int64_t> batch_size_of(const DataLoader& loader) {
  if (loader.batch_size() || !loader.batch_sampler()) return loader.batch_size();
  return loader.batch_sampler()->batch_size();
}

PassOptions pass_options_of(const DataLoaderDispatcherOptions& options) {
  return {.skip_batches = options.skip_batches,
          .use_stateful_dataloader = options.use_stateful_dataloader,
          .on_batch = options.on_batch};
}

Batch joined(const std::vector<LoadedBatch>& batches) {
  Batch all;
  for (const auto& batch : batches) {
    all.indices.insert(all.indices.end(), batch.items.indices.begin(), batch.items.indices.end());
  }
  return all;
}

// One batch behind the other.
LoadedBatch concatenated(const std::vector<LoadedBatch>& batches) {
  std::vector<Value> values;
  for (const auto& batch : batches) values.push_back(batch.value);
  try {
    return {.value = value::concatenate(values), .items = joined(batches)};
  } catch (const RuntimeError& error) {
    throw RuntimeError(
        {.where = kWhere,
         .expected = "batches that can be joined along dim 0, one for each rank",
         .got = error.what(),
         .fix =
             "Make their rows alike in the collate function (padding), or pass dispatch_batches=false, so that "
             "every rank reads its own batches, or split_batches=true, so that each batch is shared out by itself."});
  }
}

}  // namespace

// Reads whole steps on rank 0, has them on every rank, and cuts out a rank's rows.
class DataLoaderDispatcher::DispatchReader final : public Reader {
 public:
  DispatchReader(DataLoaderDispatcher& owner, std::int64_t first_step)
      : owner_(owner), loader_(owner.loader()), drop_last_(owner.drop_last()), first_step_(first_step) {
    if (owner.options_.use_stateful_dataloader) take_first_step_of_rank_0();
    if (first_step_ == 0 || loader_.is_iterable()) return;
    const auto num_skipped = first_step_ * owner.batches_per_step();
    static_cast<void>(data::skip_first_batches(loader_, num_skipped));  // refuses a loader without batches
    skipping_ = std::make_shared<SkipBatchSampler>(loader_.batch_sampler(), Skip{.num_batches = num_skipped},
                                                   /*num_kept=*/owner.batches_per_step());
    loader_ = loader_.with_batch_sampler(skipping_);
  }

  std::optional<LoadedBatch> read() override {
    return dispatched([this] { return read_step(); });
  }

  LoadedBatch finish(LoadedBatch step, bool is_last) override {
    const auto num_ranks = owner_.world_.size;
    const auto num_rows = value::find_batch_size(step.value);
    if (is_last) owner_.flags().remainder = num_rows;
    if (first_step_ == 0) remember_head(step);
    auto per_rank = num_rows / num_ranks;
    if (is_last && !drop_last_ && num_rows % num_ranks != 0) {
      if (head_.value.is_none()) remember_head(*dispatched([this] { return skipped_head(); }));
      fill(step, ++per_rank * num_ranks);
    }
    return part_of(step, owner_.world_.rank * per_rank, per_rank);
  }

 private:
  using Next = std::function<std::optional<LoadedBatch>()>;

  std::optional<LoadedBatch> dispatched(const Next& next) const {
    const auto& options = owner_.options_;
    return dispatch(next, owner_.group_, {.device = options.device, .non_blocking = options.non_blocking});
  }

  // Which alone knows where a resumed pass begins: what it has read is in no other rank's state (DATA-112).
  void take_first_step_of_rank_0() {
    const auto step = dispatched(
        [this] { return std::optional(LoadedBatch{.value = at::scalar_tensor(first_step_, at::kLong), .items = {}}); });
    first_step_ = step->value.tensor().item<std::int64_t>();
  }

  std::optional<LoadedBatch> read_step() {
    const Next next = [this] { return batches_->next_loaded(); };
    if (!batches_) {
      batches_ = loader_.pass();
      if (loader_.is_iterable() && !discard_skipped_steps(next)) return std::nullopt;
    }
    return step_of(next);
  }

  // Reads the steps before the first one off a stream; false if it ends within them.
  bool discard_skipped_steps(const Next& next) {
    if (first_step_ == 0) return true;
    head_of_stream_ = step_of(next);
    const auto num_left = (first_step_ - 1) * owner_.batches_per_step();
    for (std::int64_t i = 0; i < num_left; ++i) {
      if (!next()) return false;
    }
    return head_of_stream_.has_value();
  }

  // The first step of a pass that begins behind it.
  [[nodiscard]] std::optional<LoadedBatch> skipped_head() const {
    if (loader_.is_iterable()) return head_of_stream_;
    auto kept = skipping_->kept().begin();
    return step_of([this, &kept] { return std::optional(loader_.load(*kept++)); });
  }

  // The batches of one step in one: of each rank its own, or of all the same, or one that is shared out.
  [[nodiscard]] std::optional<LoadedBatch> step_of(const Next& next) const {
    if (owner_.options_.split_batches && !owner_.options_.replicate) return next();
    const auto wanted = static_cast<std::size_t>(owner_.world_.size);
    std::vector<LoadedBatch> group;
    while (group.size() < wanted) {
      auto batch = owner_.options_.replicate && !group.empty() ? group.front() : next();
      if (!batch) break;
      group.push_back(*std::move(batch));
    }
    if (group.empty() || (group.size() < wanted && drop_last_)) return std::nullopt;
    return concatenated(group);
  }

  [[nodiscard]] Value cut(const Value& batch, std::int64_t begin, std::int64_t end) const {
    const auto& slice = owner_.options_.slice;
    return slice ? slice(batch, begin, end, owner_.world_) : slice_rows(batch, begin, end, owner_.world_);
  }

  // The first rows of the data, with which a pass's last step is filled, wherever the pass begins.
  void remember_head(const LoadedBatch& step) {
    if (drop_last_ || !head_.value.is_none()) return;
    const auto num_ranks = static_cast<std::int64_t>(owner_.world_.size);
    head_.value = cut(step.value, 0, num_ranks);
    head_.items.indices = step.items.indices;
    head_.items.indices.resize(std::min(step.items.indices.size(), static_cast<std::size_t>(num_ranks)));
  }

  // Repeats the head until there are `wanted` rows: more than once if the whole data is smaller than the world.
  void fill(LoadedBatch& step, std::int64_t wanted) const {
    const auto num_rows = value::find_batch_size(step.value);
    const auto in_head = value::find_batch_size(head_.value);
    if (in_head < 1) {
      throw RuntimeError({.where = kWhere,
                          .expected = "a first batch with rows, to fill the last one with",
                          .got = "one without",
                          .fix = "Pass drop_last=true, or leave empty batches out."});
    }
    std::vector<Value> values{step.value};
    for (auto rows = num_rows; rows < wanted; rows += in_head) {
      values.push_back(head_.value);
      step.items.indices.insert(step.items.indices.end(), head_.items.indices.begin(), head_.items.indices.end());
    }
    step.value = value::concatenate(values);
    step.items.num_padding = wanted - num_rows;  // at the end of the first `wanted` rows
  }

  // `count` rows from `begin` on. Those of the step's padding that are among them stand at its end.
  [[nodiscard]] LoadedBatch part_of(const LoadedBatch& step, std::int64_t begin, std::int64_t count) const {
    LoadedBatch part{.value = cut(step.value, begin, begin + count), .items = {}};
    const auto& all = step.items.indices;
    const auto known = static_cast<std::int64_t>(all.size());
    for (auto row = begin; row < std::min(begin + count, known); ++row) {
      part.items.indices.push_back(all[static_cast<std::size_t>(row)]);
    }
    const auto num_real = count * owner_.world_.size - step.items.num_padding;
    part.items.num_padding = std::clamp<std::int64_t>(begin + count - num_real, 0, count);
    return part;
  }

  DataLoaderDispatcher& owner_;
  DataLoader loader_;
  std::unique_ptr<DataLoader::Pass> batches_;  // of rank 0, which begins it here so that its failures are dispatched
  bool drop_last_;
  std::int64_t first_step_;
  std::shared_ptr<SkipBatchSampler> skipping_;  // of a map-style dataset
  std::optional<LoadedBatch> head_of_stream_;   // its first step, read and skipped
  LoadedBatch head_;
};

DataLoaderDispatcher::DataLoaderDispatcher(DataLoader loader, comm::ProcessGroup group,
                                           state::GradientState& gradient_state, DataLoaderDispatcherOptions options)
    : PreparedDataLoader(std::move(loader), gradient_state, pass_options_of(options)),
      group_(std::move(group)),
      world_(group_ ? group_.world() : World{}),
      options_(std::move(options)) {
  if (options_.split_batches) static_cast<void>(split_size(batch_size_of(this->loader()), world_, kWhere));
}

std::int64_t DataLoaderDispatcher::batches_per_step() const {
  return options_.split_batches || options_.replicate ? 1 : world_.size;
}

std::int64_t DataLoaderDispatcher::num_steps() const {
  const auto batches = loader().length();
  const auto per_step = batches_per_step();
  return drop_last() ? batches / per_step : (batches + per_step - 1) / per_step;
}

std::optional<std::int64_t> DataLoaderDispatcher::total_batch_size() const {
  const auto size = batch_size_of(loader());
  return size ? std::optional(*size * batches_per_step()) : std::nullopt;
}

void DataLoaderDispatcher::forward_epoch(std::int64_t epoch) {
  const auto indices = sampler();
  if (!indices || !indices->set_epoch(epoch)) loader().set_dataset_epoch(epoch);
}

std::unique_ptr<PreparedDataLoader::Reader> DataLoaderDispatcher::begin_reading(std::int64_t first_step) {
  return std::make_unique<DispatchReader>(*this, first_step);
}

std::shared_ptr<PreparedDataLoader> DataLoaderDispatcher::another() const {
  return std::make_shared<DataLoaderDispatcher>(loader(), group_, gradient_state(), options_);
}

}  // namespace lockstep::data
