#pragma once

#include "lockstep/data/sampler.h"

namespace lockstep::data {

/// A random order that a seed and an epoch determine, so that ranks agree on it, and a resumed run finds it again,
/// without communicating.
///
/// Pass e is what RandomSampler draws from a generator seeded with `initial_seed + e`, where e is the sampler's epoch:
/// the one that was set, and one more after every exhausted pass. A pass that was left early is repeated.
///
/// Size 8, seed 42: pass 0 is 6 3 0 7 2 1 4 5, pass 1 is 4 5 7 1 3 2 6 0.
///
/// A generator given in the options is used and reseeded at every pass: its own seed is lost.
///
/// @clause DATA-097..099, DATA-104
/// @source Accelerate, SeedableRandomSampler
class LOCKSTEP_API SeedableRandomSampler final : public RandomSampler {
 public:
  /// @param data_seed  the initial seed; unset: the one the default generator was seeded with
  explicit SeedableRandomSampler(std::int64_t size, std::optional<std::int64_t> data_seed = std::nullopt,
                                 RandomSamplerOptions options = {});

  void reset() override;
  std::optional<std::int64_t> next() override;
  void take(std::int64_t count, std::vector<std::int64_t>& indices) override;
  std::int64_t skip(std::int64_t count) override;
  bool set_epoch(std::int64_t epoch) override;
  /// None to synchronise: the seed decides.
  at::Generator* generator() override { return nullptr; }

  [[nodiscard]] std::int64_t initial_seed() const { return initial_seed_; }
  [[nodiscard]] std::int64_t epoch() const { return epoch_; }

 private:
  void end_pass();

  std::int64_t initial_seed_;
  std::int64_t epoch_ = 0;
  bool in_pass_ = false;
};

/// The seed of the default CPU generator: what a seed is when the user set none.
LOCKSTEP_API std::int64_t default_seed();

}  // namespace lockstep::data
