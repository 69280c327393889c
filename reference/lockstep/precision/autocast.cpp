#include "lockstep/precision/autocast.h"

#include <ATen/autocast_mode.h>

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::precision {

Autocast::Autocast(c10::DeviceType device, c10::ScalarType dtype, const config::AutocastKwargs& kwargs) {
  if (dtype != c10::kBFloat16 && dtype != c10::kHalf) {
    throw InvalidArgument({.where = "autocast",
                           .expected = "bfloat16 or float16",
                           .got = std::string(c10::toString(dtype)),
                           .fix = "Pass one of them, or enabled=false to compute in the tensors' own dtypes."});
  }
  before_ = Before{.device = device,
                   .enabled = at::autocast::is_autocast_enabled(device),
                   .dtype = at::autocast::get_autocast_dtype(device),
                   .cache_enabled = at::autocast::is_autocast_cache_enabled()};
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(device, kwargs.enabled);
  at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::set_autocast_cache_enabled(kwargs.cache_enabled.value_or(before_->cache_enabled));
}

Autocast Autocast::off(c10::DeviceType device) { return Autocast(device, c10::kBFloat16, {.enabled = false}); }

Autocast::~Autocast() {
  if (!before_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(before_->device, before_->enabled);
  at::autocast::set_autocast_dtype(before_->device, before_->dtype);
  at::autocast::set_autocast_cache_enabled(before_->cache_enabled);
}

}  // namespace lockstep::precision
