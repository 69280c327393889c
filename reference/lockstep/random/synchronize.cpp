#include "lockstep/random/synchronize.h"

#include <ATen/Context.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/random/generator.h"

namespace lockstep::random {
namespace {

// In the order of RngType.
constexpr std::array<std::string_view, 11> kWords{"torch", "cuda", "xla", "npu",    "mlu",      "sdaa",
                                                  "musa",  "xpu",  "hpu", "neuron", "generator"};

at::Generator generator_of(RngType type, const std::optional<at::Generator>& generator,
                           const at::Generator& rank_generator) {
  const auto where = fmt::format("synchronize(RngType::{})", to_word(type));
  switch (type) {
    case RngType::torch: return rank_generator.defined() ? rank_generator : default_generator();
    case RngType::cuda:
      if (at::hasCUDA()) return at::globalContext().defaultGenerator(at::kCUDA);  // of the current device
      throw AssertionError({.where = where,
                            .expected = "a CUDA device",
                            .got = "none",
                            .fix = "Leave cuda out of rng_types; torch and generator need no device."});
    case RngType::generator:
      if (generator && generator->defined()) return *generator;
      throw AssertionError({.where = where,
                            .expected = "a generator whose state to synchronise",
                            .got = "none",
                            .fix = "Pass the one that the sampler draws from."});
    default:
      throw AssertionError({.where = where,
                            .expected = "a device that this build can drive, cuda or none",
                            .got = std::string(to_word(type)),
                            .fix = "Leave it out of rng_types."});
  }
}

/// Rank 0's state; the others' part is to take it.
at::Tensor state_of_root(const at::Generator& generator, const comm::ProcessGroup& group) {
  // NCCL moves only what lies on the rank's device.
  const auto state = get_state(generator).to(group.backend() == "nccl" ? at::kCUDA : at::kCPU);
  group.broadcast(state, {.root = comm::Member::group(0)}).wait();
  return state.cpu();
}

}  // namespace

RngType rng_type_from(std::string_view word) {
  const auto found = std::find(kWords.begin(), kWords.end(), word);
  if (found != kWords.end()) return static_cast<RngType>(found - kWords.begin());
  throw InvalidArgument({.where = "rng_types",
                         .expected = fmt::format("one of {}", fmt::join(kWords, ", ")),
                         .got = fmt::format("\"{}\"", word),
                         .fix = "Name one of them, or pass no rng_types to synchronise nothing."});
}

std::string_view to_word(RngType type) { return kWords.at(static_cast<std::size_t>(type)); }

void synchronize(RngType type, const std::optional<at::Generator>& generator, const comm::ProcessGroup& group,
                 const at::Generator& rank_generator) {
  const auto mine = generator_of(type, generator, rank_generator);
  if (!group || group.size() == 1) return;
  set_state(mine, state_of_root(mine, group));
  group.account().emit(
      [type] { return accounting::GeneratorUse{.generator = std::string(to_word(type)), .use = "synchronize"}; });
}

void synchronize(const std::vector<RngType>& types, const std::optional<at::Generator>& generator,
                 const comm::ProcessGroup& group, const at::Generator& rank_generator) {
  for (const auto type : types) synchronize(type, generator, group, rank_generator);
}

}  // namespace lockstep::random
