#include "lockstep/data/seedable_sampler.h"
#include "lockstep/random/generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace lockstep::data {
namespace {

RandomSamplerOptions with_generator(RandomSamplerOptions options) {
  if (!options.generator.defined()) options.generator = random::make_generator(0);  // reseeded by every reset()
  return options;
}

}  // namespace

SeedableRandomSampler::SeedableRandomSampler(std::int64_t size, std::optional<std::int64_t> data_seed,
                                             RandomSamplerOptions options)
    : RandomSampler(size, with_generator(std::move(options))), initial_seed_(data_seed ? *data_seed : default_seed()) {}

void SeedableRandomSampler::reset() {
  auto& generator = *RandomSampler::generator();
  {
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(static_cast<std::uint64_t>(initial_seed_ + epoch_));
  }
  RandomSampler::reset();
  in_pass_ = true;
}

std::optional<std::int64_t> SeedableRandomSampler::next() {
  const auto index = RandomSampler::next();
  if (!index) end_pass();
  return index;
}

void SeedableRandomSampler::take(std::int64_t count, std::vector<std::int64_t>& indices) {
  const auto wanted = indices.size() + static_cast<std::size_t>(count);
  RandomSampler::take(count, indices);
  if (indices.size() < wanted) end_pass();
}

std::int64_t SeedableRandomSampler::skip(std::int64_t count) {
  const auto skipped = RandomSampler::skip(count);
  if (skipped < count) end_pass();
  return skipped;
}

void SeedableRandomSampler::end_pass() {
  if (in_pass_) ++epoch_;
  in_pass_ = false;
}

bool SeedableRandomSampler::set_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  return true;
}

std::int64_t default_seed() { return static_cast<std::int64_t>(at::detail::getDefaultCPUGenerator().current_seed()); }

}  // namespace lockstep::data
