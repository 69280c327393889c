#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "lockstep/accounting/phase.h"
#include "lockstep/sim/device/rank_books.h"

namespace lockstep::sim {

/// A block of memory in somebody's books: who pays for it until it is freed, on whichever thread that happens.
struct Block {
  RankBooks* books = nullptr;
  std::int64_t bytes = 0;
  accounting::Phase phase = accounting::Phase::other;  ///< in which it was allocated
};

/// The live blocks that are in books, by address. In shards, so that ranks that are threads seldom meet at a lock.
///
/// A table beside the memory rather than a header in it: LibTorch's oneDNN operators allocate by
/// Allocator::raw_allocate, which leaves no room for a context of ours, and hand any address back, booked or not.
class BlockTable {
 public:
  void insert(const void* address, const Block& block) {
    auto& shard = shard_of(address);
    const std::lock_guard lock(shard.mutex);
    shard.blocks.insert_or_assign(address, block);
  }

  /// Takes the block at this address out of the table; none if it was never booked.
  std::optional<Block> take(const void* address) noexcept {
    auto& shard = shard_of(address);
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.blocks.find(address);
    if (found == shard.blocks.end()) return std::nullopt;
    const auto block = found->second;
    shard.blocks.erase(found);
    return block;
  }

 private:
  static constexpr std::size_t kNumShards = 64;
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<const void*, Block> blocks;
  };

  // Blocks are aligned to 64 bytes, and large ones to much more: fold the upper bits into the lower ones.
  Shard& shard_of(const void* address) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(address);
    return shards_[(bits >> 6 ^ bits >> 12 ^ bits >> 18) % kNumShards];
  }

  std::array<Shard, kNumShards> shards_;
};

}  // namespace lockstep::sim
