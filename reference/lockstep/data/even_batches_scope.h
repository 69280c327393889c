#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/data/batch_sampler_shard.h"
#include "lockstep/data/prepared_data_loader.h"

namespace lockstep::data {

/// Whether prepared loaders give ranks equally many batches, for as long as it lives: another value for the passes that
/// begin within it, and the former one afterwards, however it ends. Every rank opens it alike, outside its passes.
///
/// Only map-style loaders that every rank reads its part of can do with unequal numbers of batches: all others are left
/// as they are (`num_untouched`).
///
/// @clause ACC-044..046
/// @source Accelerate, Accelerator.join_uneven_inputs
class [[nodiscard, gnu::visibility("default")]] EvenBatchesScope {
 public:
  EvenBatchesScope() = default;  ///< changes nothing
  EvenBatchesScope(const std::vector<std::shared_ptr<PreparedDataLoader>>& loaders, bool even_batches);
  ~EvenBatchesScope();
  EvenBatchesScope(EvenBatchesScope && other) noexcept;
  EvenBatchesScope& operator=(EvenBatchesScope&&) = delete;

  /// Loaders shared among several ranks to which the value means nothing: dispatchers and streams.
  [[nodiscard]] int num_untouched() const { return num_untouched_; }

 private:
  std::vector<std::pair<std::shared_ptr<BatchSamplerShard>, bool>> before_;
  int num_untouched_ = 0;
};

}  // namespace lockstep::data
