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
  if (!index && in_pass_) {
    in_pass_ = false;
    ++epoch_;
  }
  return index;
}

bool SeedableRandomSampler::set_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  return true;
}

std::int64_t default_seed() { return static_cast<std::int64_t>(at::detail::getDefaultCPUGenerator().current_seed()); }

}  // namespace lockstep::data
