#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace lockstep::sim::generated {

/// Random choices that a seed repeats on every machine: the standard library's distributions may differ between two.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  /// From 0 to count - 1. @param count  at least 1
  int below(std::size_t count) { return static_cast<int>(engine_() % count); }
  /// Both ends included.
  int between(int low, int high) { return low + below(static_cast<std::size_t>(high - low + 1)); }
  bool chance(int percent) { return below(100) < percent; }
  /// @param choices  not empty
  template <typename T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(choices.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace lockstep::sim::generated
