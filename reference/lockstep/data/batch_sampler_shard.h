#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/base/world.h"
#include "lockstep/data/batch_sampler.h"

namespace lockstep::data {

/// What becomes of an incomplete last round of batches.
enum class Tail {
  drop,  ///< nobody gets a part of it
  keep,  ///< handed out as it is: some ranks get a short batch, or none
  even,  ///< filled with indices from the head of the pass: every rank gets a full batch
};

struct ShardOptions {
  bool split_batches = false;  ///< cut each batch into world.size parts, instead of dealing whole batches
  bool even_batches = true;    ///< fill the last round (Tail::even); ignored if the batch sampler drops its last batch
};

/// Indices in each rank's part of a batch that is split.
/// @throws InvalidArgument, which names `where`, if the batch size is missing or no multiple of world.size
LOCKSTEP_API std::int64_t split_size(std::optional<std::int64_t> batch_size, World world, const std::string& where);

/// Hands each rank its share of a batch sampler's batches.
///
/// Shares are taken in rounds of `world.size`: whole batches one after the other, or with `split_batches` the parts of
/// one batch. Rank r receives the r-th share of each round. What happens to an incomplete last round is the `Tail`:
/// dropped (the batch sampler has drop_last), handed out as it is (even_batches is false), or filled from the head of
/// the pass, going on in the cycle of the first round's indices where the share before stopped.
///
/// 10 items in batches of 4 on 3 ranks, [0 1 2 3] [4 5 6 7] [8 9]: rank 2 gets [8 9 0 1] with Tail::even, [8 9] with
/// Tail::keep. On 2 ranks the last round is [8 9 0 1] for rank 0 and [2 3 4 5] for rank 1.
///
/// Every rank reads all batches, so that ranks that see the same order need not communicate. A batch sampler without a
/// batch size is dealt whole; its last round is filled with whole batches.
///
/// @throws InvalidArgument  with `split_batches`, if the batch size is missing or no multiple of `world.size`; if it is
///                          not positive; from next(), if the batch sampler has a batch size and a batch other than the
///                          last does not have it: dealing on would lose or repeat data
/// @clause DATA-020..043
/// @source Accelerate, BatchSamplerShard
class LOCKSTEP_API BatchSamplerShard final : public BatchSampler {
 public:
  BatchSamplerShard(std::shared_ptr<BatchSampler> batches, World world, ShardOptions options = {});

  void reset() override;
  std::optional<Batch> next() override;
  /// Batches of this rank. Exact, if the batch sampler knows its number of indices; otherwise, with split_batches and
  /// Tail::keep, one more than a rank yields that gets nothing of a short last batch.
  [[nodiscard]] std::int64_t length() const override;
  /// Batches of all ranks together, before the deal (DATA-038).
  [[nodiscard]] std::int64_t total_length() const { return batches_->length(); }
  [[nodiscard]] std::optional<std::int64_t> batch_size() const override { return batches_->batch_size(); }
  [[nodiscard]] bool drop_last() const override { return batches_->drop_last(); }
  [[nodiscard]] std::optional<std::int64_t> num_indices() const override { return batches_->num_indices(); }
  [[nodiscard]] std::optional<std::int64_t> total_batch_size() const override;
  [[nodiscard]] std::shared_ptr<BatchSampler> wrapped() const override { return batches_; }
  [[nodiscard]] std::shared_ptr<BatchSampler> with_sampler(std::shared_ptr<Sampler> other) const override;
  [[nodiscard]] bool is_rank_sharded() const override;

  [[nodiscard]] World world() const { return world_; }
  [[nodiscard]] bool split_batches() const { return split_; }
  [[nodiscard]] Tail tail() const { return tail_; }
  /// As given; it has no meaning if the batch sampler drops its last batch.
  [[nodiscard]] bool even_batches() const { return even_batches_; }
  /// For the coming passes (Accelerator::join_uneven_inputs).
  void set_even_batches(bool on);

 private:
  // One round of shares. Of the other ranks' batches only the sizes are known, unless this rank needs them.
  struct Round {
    std::vector<std::int64_t> sizes;  // in rank order; fewer than world.size at the end of the pass
    Batch mine;
  };

  Round take_round();
  Round take_batches();
  Round take_parts();
  void check_sizes(const std::vector<std::int64_t>& batch_sizes);
  [[nodiscard]] bool is_complete(const Round& round) const;
  [[nodiscard]] Batch filled_from_head(Round round) const;

  std::shared_ptr<BatchSampler> batches_;
  World world_;
  bool split_;
  bool even_batches_;
  Tail tail_;
  std::optional<std::int64_t> share_size_;  // indices per share; unset: batches of varying size
  std::int64_t num_taken_ = 0;              // batches taken in this pass
  std::vector<Batch> head_;                 // the batches of the pass's first round
};

}  // namespace lockstep::data
