#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/base/export.h"

namespace lockstep::data {

/// The order in which a pass visits the items of a dataset: their indices, one at a time.
///
/// A pass is `reset()`, then `next()` until it is empty. One pass at a time: a sampler has a single cursor.
/// Users derive their own; the defaults are those of a sampler that draws nothing and knows no epochs.
class LOCKSTEP_API Sampler {
 public:
  virtual ~Sampler();

  /// Begins a pass. Whatever the order depends on (generator, epoch) is read from here on.
  virtual void reset() = 0;
  /// The next index; empty at the end of the pass, and from then on until the next reset().
  virtual std::optional<std::int64_t> next() = 0;
  /// How many indices a whole pass hands out.
  [[nodiscard]] virtual std::int64_t length() const = 0;

  /// Appends the next `count` indices, fewer at the end of the pass: as so many calls of next(), for samplers that can
  /// do it faster.
  virtual void take(std::int64_t count, std::vector<std::int64_t>& indices);
  /// Passes over the next `count` indices. @return how many there were
  virtual std::int64_t skip(std::int64_t count);

  /// Makes the coming passes those of `epoch`. Returns false if this sampler knows no epochs.
  virtual bool set_epoch(std::int64_t /*epoch*/) { return false; }
  /// The slot of the generator that decides the order, which may be empty (an undefined generator); nullptr if it has
  /// no such slot. Ranks that share one order synchronise this generator (RNG-006).
  virtual at::Generator* generator() { return nullptr; }
  /// Whether every rank's own instance hands out only that rank's part (DistributedSampler): sharding it again would
  /// lose samples.
  [[nodiscard]] virtual bool is_rank_sharded() const { return false; }
};

/// 0, 1, ... size-1.
class LOCKSTEP_API SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(std::int64_t size) : size_(size) {}

  void reset() override { cursor_ = 0; }
  std::optional<std::int64_t> next() override;
  void take(std::int64_t count, std::vector<std::int64_t>& indices) override;
  std::int64_t skip(std::int64_t count) override;
  [[nodiscard]] std::int64_t length() const override { return size_; }

 private:
  std::int64_t size_;
  std::int64_t cursor_ = 0;
};

struct RandomSamplerOptions {
  bool replacement = false;                 ///< draw each index afresh
  std::optional<std::int64_t> num_samples;  ///< indices per pass; unset: `size`
  at::Generator generator;                  ///< undefined: each pass seeds a new one with one draw of the default one
};

/// A random order of 0 ... size-1, the very one PyTorch's RandomSampler draws from the same generator: permutations one
/// after the other, the last one cut to `num_samples` (it is drawn even if nothing of it is used), or with replacement
/// 32 indices at a time.
///
/// Size 5 and a generator seeded with 0: 4 0 1 3 2 in the first pass, 2 4 1 3 0 in the second.
/// A dataset without items gives empty passes and draws nothing, where PyTorch refuses it.
///
/// @throws InvalidArgument  if `num_samples` is given and not positive
/// @source PyTorch, torch.utils.data.RandomSampler
class LOCKSTEP_API RandomSampler : public Sampler {
 public:
  explicit RandomSampler(std::int64_t size, RandomSamplerOptions options = {});

  void reset() override;
  std::optional<std::int64_t> next() override;
  void take(std::int64_t count, std::vector<std::int64_t>& indices) override;
  std::int64_t skip(std::int64_t count) override;
  [[nodiscard]] std::int64_t length() const override { return size_ == 0 ? 0 : options_.num_samples.value_or(size_); }
  at::Generator* generator() override { return &options_.generator; }

  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] const RandomSamplerOptions& options() const { return options_; }

 private:
  bool has_drawn();
  void draw_more();

  std::int64_t size_;
  RandomSamplerOptions options_;
  at::Generator drawing_;  // what this pass draws from
  at::Tensor drawn_;       // the permutation, or the 32 indices, in use; kept for what next_ points to
  const std::int64_t* next_ = nullptr;
  const std::int64_t* drawn_end_ = nullptr;
  std::int64_t left_ = 0;  // indices of this pass not drawn yet
  bool exhausted_ = true;  // the last draw was made
};

}  // namespace lockstep::data
