#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/data/batch_sampler.h"

namespace lockstep::data {

/// How many batches at the head of a pass are left out, and of which passes.
struct Skip {
  std::int64_t num_batches = 0;  ///< a negative number skips nothing
  bool every_epoch = true;       ///< false: only until a pass has been exhausted
  std::int64_t num_later = 0;    ///< of the passes after that one, then

  /// To be called when a pass is exhausted.
  void exhaust() {
    if (!every_epoch) *this = {.num_batches = num_later};
  }
  /// What is skipped of what this one leaves.
  [[nodiscard]] LOCKSTEP_API Skip then(const Skip& next) const;
  /// What is left of a pass of `total` batches. @throws InvalidArgument  if more is skipped than there is
  [[nodiscard]] LOCKSTEP_API std::int64_t left_of(std::int64_t total) const;
};

/// The batches of another batch sampler without the first ones, which are drawn but not handed out. Everything but the
/// length and the number of indices is that of the other.
///
/// @clause DATA-038, DATA-105..107
/// @source Accelerate, SkipBatchSampler
class LOCKSTEP_API SkipBatchSampler final : public BatchSampler {
 public:
  /// @param num_kept  how many of the skipped batches `kept` has
  SkipBatchSampler(std::shared_ptr<BatchSampler> batches, Skip skip, std::int64_t num_kept = 0);

  void reset() override;
  std::optional<Batch> next() override { return batches_->next(); }
  void end_pass() override;
  /// @throws InvalidArgument  if more is skipped than there is
  [[nodiscard]] std::int64_t length() const override { return skip_.left_of(total_length()); }
  /// The first batches of the pass that was begun last, which were skipped.
  [[nodiscard]] const std::vector<Batch>& kept() const { return kept_; }
  /// Batches of a pass, skipped ones included.
  [[nodiscard]] std::int64_t total_length() const { return batches_->length(); }
  [[nodiscard]] std::optional<std::int64_t> batch_size() const override { return batches_->batch_size(); }
  [[nodiscard]] bool drop_last() const override { return batches_->drop_last(); }
  [[nodiscard]] std::optional<std::int64_t> num_indices() const override;
  [[nodiscard]] std::optional<std::int64_t> total_batch_size() const override { return batches_->total_batch_size(); }
  [[nodiscard]] std::shared_ptr<BatchSampler> wrapped() const override { return batches_; }
  [[nodiscard]] std::shared_ptr<BatchSampler> with_sampler(std::shared_ptr<Sampler> other) const override;

 private:
  std::shared_ptr<BatchSampler> batches_;
  Skip skip_;
  std::int64_t num_kept_;
  std::vector<Batch> kept_;
};

}  // namespace lockstep::data
