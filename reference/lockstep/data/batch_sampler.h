#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/data/sampler.h"

namespace lockstep::data {

/// The items of one batch.
struct Batch {
  std::vector<std::int64_t> indices;
  std::int64_t num_padding = 0;  ///< how many of them, at the end, repeat others so that ranks get equally many

  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
  bool operator==(const Batch&) const = default;
};

/// Which items go together, batch after batch. Users derive their own: `reset`, `next` and `length` are all it takes;
/// one whose batches have a fixed size says so in `batch_size`.
///
/// A pass is `reset()`, then `next()` until it is empty; one pass at a time.
class LOCKSTEP_API BatchSampler {
 public:
  virtual ~BatchSampler();

  /// Begins a pass.
  virtual void reset() = 0;
  /// The next batch; empty at the end of the pass, and from then on until the next reset().
  virtual std::optional<Batch> next() = 0;
  /// How many batches a whole pass hands out.
  [[nodiscard]] virtual std::int64_t length() const = 0;
  /// Passes over the next batch, of which nobody wants the indices. @return its size; empty at the end of the pass
  virtual std::optional<std::int64_t> skip();

  /// The size of every batch but possibly the last; unset for batches of varying size.
  [[nodiscard]] virtual std::optional<std::int64_t> batch_size() const { return std::nullopt; }
  /// Whether a short last batch is left out.
  [[nodiscard]] virtual bool drop_last() const { return false; }
  /// How many indices a pass hands out or, with drop_last, draws from; unset if unknown.
  [[nodiscard]] virtual std::optional<std::int64_t> num_indices() const { return std::nullopt; }
  /// Indices that all ranks together take per step: batch_size(), unless each rank takes a batch of its own.
  [[nodiscard]] virtual std::optional<std::int64_t> total_batch_size() const { return batch_size(); }

  /// What the indices come from; none for a batch sampler that makes them up.
  [[nodiscard]] virtual std::shared_ptr<Sampler> sampler() const { return nullptr; }
  /// The batch sampler whose batches this one hands on; none for one at the bottom.
  [[nodiscard]] virtual std::shared_ptr<BatchSampler> wrapped() const { return nullptr; }
  /// The same batches over another sampler, which leaves this one as it is; nullptr if that cannot be done.
  [[nodiscard]] virtual std::shared_ptr<BatchSampler> with_sampler(std::shared_ptr<Sampler> /*other*/) const {
    return nullptr;
  }
  /// Makes the coming passes those of `epoch`, here and in everything below.
  virtual void set_epoch(std::int64_t epoch);
  /// Called by who hands out a pass's batches once none is left: workers may have taken all of them long before. Handed
  /// on to everything below.
  virtual void end_pass();
  /// Whether every rank's own instance hands out only that rank's part.
  [[nodiscard]] virtual bool is_rank_sharded() const;
};

/// Collects a sampler's indices into batches of `batch_size`; the last one may be shorter, or is left out with
/// `drop_last`. What PyTorch calls BatchSampler.
///
/// Indices 0..6 in batches of 3: [0 1 2] [3 4 5] [6].
///
/// @throws InvalidArgument  if `batch_size` is not positive
class LOCKSTEP_API SamplerBatches final : public BatchSampler {
 public:
  SamplerBatches(std::shared_ptr<Sampler> sampler, std::int64_t batch_size, bool drop_last = false);

  void reset() override { sampler_->reset(); }
  std::optional<Batch> next() override;
  std::optional<std::int64_t> skip() override;
  [[nodiscard]] std::int64_t length() const override;
  [[nodiscard]] std::optional<std::int64_t> batch_size() const override { return batch_size_; }
  [[nodiscard]] bool drop_last() const override { return drop_last_; }
  [[nodiscard]] std::optional<std::int64_t> num_indices() const override { return sampler_->length(); }
  [[nodiscard]] std::shared_ptr<Sampler> sampler() const override { return sampler_; }
  [[nodiscard]] std::shared_ptr<BatchSampler> with_sampler(std::shared_ptr<Sampler> other) const override;

 private:
  [[nodiscard]] bool is_batch(std::int64_t num_indices) const;

  std::shared_ptr<Sampler> sampler_;
  std::int64_t batch_size_;
  bool drop_last_;
};

}  // namespace lockstep::data
