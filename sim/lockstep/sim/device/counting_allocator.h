#pragma once

#include <c10/core/Allocator.h>

#include <atomic>

#include "lockstep/sim/device/block_table.h"

namespace lockstep::sim {

/// Hands out another allocator's memory, unchanged, and books it on the rank that asks.
///
/// Nothing is booked for memory of threads that belong to no rank, of no bytes, or asked for while it is off; such
/// blocks are the inner allocator's alone. Nor for a refused allocation, whether it is the pretend device that refuses
/// (device_limit.h) or the machine: first comes the memory, then the books.
class CountingAllocator final : public c10::Allocator {
 public:
  /// The process's one, which is never destroyed: its blocks may outlive everything. Wraps the CPU allocator that is in
  /// force at the first call.
  /// @throws NotSupported  if that one cannot be wrapped
  static CountingAllocator& instance();

  void switch_to(bool on) noexcept { is_on_.store(on, std::memory_order_relaxed); }
  [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }

  /// @throws c10::OutOfMemoryError  if the rank's pretend device has no room
  c10::DataPtr allocate(std::size_t num_bytes) override;
  /// Frees any block of the process's CPU memory, booked or not, from before or after the installation.
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &release; }
  [[nodiscard]] bool is_simple_data_ptr(const c10::DataPtr& data) const override;
  void copy_data(void* to, const void* from, std::size_t num_bytes) const override;

 private:
  explicit CountingAllocator(c10::Allocator& inner) : inner_(inner) {}
  static void release(void* address);

  c10::Allocator& inner_;
  BlockTable blocks_;
  std::atomic<bool> is_on_{false};
};

/// The books of this process's ranks.
RankShelf& rank_shelf();

}  // namespace lockstep::sim
