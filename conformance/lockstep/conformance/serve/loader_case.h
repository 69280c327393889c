#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/conformance/serve/arguments.h"
#include "lockstep/conformance/serve/items.h"
#include "lockstep/data/batch_sampler.h"
#include "lockstep/data/data_loader.h"
#include "lockstep/data/iterable_dataset.h"

namespace lockstep::conformance {

/// A call of a slice function: begin and end of the rows, rank and number of ranks.
using Slice = std::array<std::int64_t, 4>;

/// What is recorded of a data set: how many of its items were fetched, the epochs that it was told, how its batches
/// were cut.
struct DatasetRecord {
  std::atomic<std::int64_t> reads{0};
  std::vector<std::int64_t> epochs_seen;
  std::vector<Slice> slices;
};

/// An iterable data set of items 0 ... n-1, in an order that its own generator decides, if it has one.
struct StreamOptions {
  std::int64_t size;
  bool is_sized = true;
  bool logs_epochs = false;  ///< it has set_epoch
  std::optional<std::int64_t> generator_seed;
};
std::shared_ptr<data::IterableDataset> make_stream(const Items& items, const StreamOptions& options,
                                                   std::shared_ptr<DatasetRecord> record);

/// A LOADER of the protocol: a data set, and the loader over it as the user would write it.
struct LoaderCase {
  Items items;
  std::shared_ptr<DatasetRecord> record;
  data::DataLoader loader;
  bool prepare;  ///< false: it is used as it is
};

/// @throws Unsupported  for what Lockstep does not have
/// @throws InvalidArgument and others, as the loader's own constructor does
LoaderCase loader_from(Arguments& arguments);

/// A batch sampler that is a list of batches, in the order given, of which it hands out copies.
class ListedBatches final : public data::BatchSampler {
 public:
  ListedBatches(std::vector<Indices> batches, std::optional<std::int64_t> batch_size, bool drop_last)
      : batches_(std::move(batches)), batch_size_(batch_size), drop_last_(drop_last) {}

  void reset() override { next_ = 0; }
  std::optional<data::Batch> next() override;
  [[nodiscard]] std::int64_t length() const override { return static_cast<std::int64_t>(batches_.size()); }
  [[nodiscard]] std::optional<std::int64_t> batch_size() const override { return batch_size_; }
  [[nodiscard]] bool drop_last() const override { return drop_last_; }

 private:
  std::vector<Indices> batches_;
  std::optional<std::int64_t> batch_size_;
  bool drop_last_;
  std::size_t next_ = 0;
};

/// `batches`, `batches_b` and `batches_drop_last` of `arguments`; none without `batches`.
std::shared_ptr<ListedBatches> listed_batches_from(Arguments& arguments);

}  // namespace lockstep::conformance
