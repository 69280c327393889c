#include "lockstep/random/seeding.h"

#include <ATen/Context.h>

#include <cstdlib>
#include <mutex>

#include "lockstep/base/error.h"

namespace lockstep::random {
namespace {

std::int64_t seed_of_this_rank(std::int64_t seed, const SeedOptions& options) {
  if (!options.device_specific) return seed;
  if (!options.process_index) {
    throw InvalidArgument({.where = "set_seed(device_specific=true)",
                           .expected = "the rank's process_index",
                           .got = "none",
                           .fix = "Pass process_index, or make an Accelerator first and take it from there."});
  }
  return seed + *options.process_index;
}

}  // namespace

void set_seed(std::int64_t seed, const SeedOptions& options) {
  const auto mine = seed_of_this_rank(seed, options);
  std::srand(static_cast<unsigned>(mine));
  at::manual_seed(static_cast<std::uint64_t>(mine));
  if (auto generator = options.rank_generator; generator.defined()) {
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(static_cast<std::uint64_t>(mine));
  }
  if (options.deterministic) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  if (options.account) {
    options.account->emit([] { return accounting::GeneratorUse{.generator = "torch", .use = "seed"}; });
  }
}

}  // namespace lockstep::random
