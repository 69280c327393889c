#pragma once

#include <vector>

#include "lockstep/base/world.h"
#include "lockstep/data/sampler.h"

namespace lockstep::data {

struct DistributedSamplerOptions {
  bool shuffle = true;
  std::int64_t seed = 0;   ///< the same on every rank; pass e of a shuffled sampler is seeded with seed + e
  bool drop_last = false;  ///< drop the items beyond a multiple of the world size instead of repeating the first ones
};

/// A sampler that is one rank's part by itself: rank r visits items r, r + w, r + 2w, ... of the order, which is first
/// repeated from its head, or cut, to a multiple of the world size w.
///
/// `set_epoch` chooses the permutation; without it every pass has the same. A loader over such a sampler must not be
/// sharded again: prepare_data_loader refuses it unless told that it is `already_sharded`.
///
/// 5 items on 2 ranks, not shuffled: rank 0 visits 0 2 4, rank 1 visits 1 3 0.
///
/// @throws InvalidArgument  unless 0 <= world.rank < world.size
/// @source PyTorch, torch.utils.data.distributed.DistributedSampler
class LOCKSTEP_API DistributedSampler final : public Sampler {
 public:
  DistributedSampler(std::int64_t size, World world, DistributedSamplerOptions options = {});

  void reset() override;
  std::optional<std::int64_t> next() override;
  [[nodiscard]] std::int64_t length() const override { return num_samples_; }
  bool set_epoch(std::int64_t epoch) override;
  [[nodiscard]] bool is_rank_sharded() const override { return world_.size > 1; }

 private:
  std::int64_t size_;
  World world_;
  DistributedSamplerOptions options_;
  std::int64_t num_samples_;
  std::int64_t epoch_ = 0;
  std::vector<std::int64_t> order_;  // of all items, when shuffled
  std::int64_t taken_ = 0;
};

}  // namespace lockstep::data
