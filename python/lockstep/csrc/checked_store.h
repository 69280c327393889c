#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/sim/backend/checked_work.h"
#include "lockstep/sim/backend/key_wait.h"

namespace lockstep::python {

/// A store of which it is known for what key each thread waits, and in which a verdict ends the waits.
template <typename Base>
class CheckedStore final : public Base {
 public:
  using Base::Base;

  std::vector<std::uint8_t> get(const std::string& key) override {
    await({key}, Base::getTimeout());
    return Base::get(key);
  }
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override {
    await(keys, Base::getTimeout());
    return Base::multiGet(keys);
  }
  void wait(const std::vector<std::string>& keys) override { await(keys, Base::getTimeout()); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    await(keys, timeout);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Looks again and again, since nothing else would end a wait for a key that nobody sets.
  void await(const std::vector<std::string>& keys, std::chrono::milliseconds timeout) {
    if (keys.empty() || Base::check(keys)) return;
    const sim::KeyWait waiting(missing_of(keys));
    if (!waiting.rank()) return Base::wait(keys, timeout);
    const bool is_endless = timeout == Base::kNoTimeout;
    const auto deadline = Clock::now() + timeout;
    for (auto pause = kShortestPause; !Base::check(keys); pause = std::min(pause * 2, kLongestPause)) {
      sim::with_verdict_as_error([&] { waiting.rank()->rank->throw_if_judged(); });
      if (!is_endless && Clock::now() >= deadline) return Base::wait(keys, std::chrono::milliseconds(1));  // its error
      std::this_thread::sleep_for(pause);
    }
  }

  // Of several keys the first that is not there yet.
  std::string missing_of(const std::vector<std::string>& keys) {
    for (const auto& key : keys) {
      if (!Base::check({key})) return key;
    }
    return keys.front();
  }

  static constexpr std::chrono::microseconds kShortestPause{200};
  static constexpr std::chrono::microseconds kLongestPause{20'000};
};

}  // namespace lockstep::python
