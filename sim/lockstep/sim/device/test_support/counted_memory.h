#pragma once

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

#include "lockstep/sim/device/device_limit.h"
#include "lockstep/sim/device/tensor_memory.h"
#include "lockstep/state/rank_context.h"

namespace lockstep::sim {

/// Tests whose tensors are counted; afterwards those of other tests are not.
class CountedMemory : public testing::Test {
 protected:
  CountedMemory() { TensorMemory::install(); }
  ~CountedMemory() override {
    TensorMemory::switch_off();
    set_device_limit(std::nullopt);
  }
};

/// A tensor of so many bytes, and nothing beside it.
inline at::Tensor tensor_of(std::int64_t bytes) { return at::empty({bytes}, at::kByte); }

/// Runs `body` as a rank that has just come into being, so that its books are empty.
inline void as_new_rank(int rank, const std::function<void()>& body) {
  const state::StateScope scope(
      state::RankContext::for_thread({.rank = rank, .size = rank + 1}, comm::Store::hash(std::chrono::seconds(1)), {}));
  body();
}

inline accounting::Account& account_here() { return *state::RankContext::current().account(); }

}  // namespace lockstep::sim
