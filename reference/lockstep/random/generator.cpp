#include "lockstep/random/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <mutex>
#include <optional>

namespace lockstep::random {

at::Generator make_generator(std::int64_t seed) {
  return at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed));
}

at::Generator default_generator() { return at::detail::getDefaultCPUGenerator(); }

std::int64_t draw_seed(const at::Generator& generator) {
  const auto from = generator.defined() ? std::optional(generator) : std::nullopt;
  return at::empty({}, at::kLong).random_(from).item<std::int64_t>();
}

at::Tensor get_state(const at::Generator& generator) {
  const std::lock_guard lock(generator.getIntrusivePtr()->mutex_);
  return generator.get_state();
}

void set_state(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace lockstep::random
