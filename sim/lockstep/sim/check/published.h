#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

namespace lockstep::sim {

/// A value in shared memory with one writer and any number of readers in other processes: a sequence lock.
///
/// Nobody holds anything, so that a writer that dies in the middle leaves a value that no reader accepts, and no
/// reader waiting. The words are atomics, since a reader may look while they change.
template <typename T>
class Published {
  static_assert(std::is_trivially_copyable_v<T>);
  static constexpr std::size_t kWords = (sizeof(T) + 7) / 8;

 public:
  void store(const T& value) noexcept {
    std::array<std::uint64_t, kWords> words{};
    std::memcpy(words.data(), &value, sizeof(T));
    const auto version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
    version_.store(version + 2, std::memory_order_release);
  }

  /// None when nothing was written yet, or the writer was at it at each of some attempts.
  [[nodiscard]] std::optional<T> load() const noexcept {
    std::array<std::uint64_t, kWords> words{};
    for (int attempt = 0; attempt < 100; ++attempt) {
      const auto before = version_.load(std::memory_order_acquire);
      if (before == 0) return std::nullopt;
      if (before % 2 != 0) continue;
      for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(std::memory_order_relaxed) != before) continue;
      T value;
      std::memcpy(static_cast<void*>(&value), words.data(), sizeof(T));
      return value;
    }
    return std::nullopt;
  }

  /// Grows with every store: equal numbers at two times mean that nothing was written between them.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> version_{0};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace lockstep::sim
