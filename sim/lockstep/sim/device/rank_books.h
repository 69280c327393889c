#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "lockstep/sim/device/booked_rank.h"
#include "lockstep/sim/device/memory_report.h"

namespace lockstep::sim {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// The tensor memory of one rank. All members are safe to call from any thread, none of them waits, and what they count
/// is exact under concurrency: each sum is one atomic, and a peak sees every value that its sum takes.
class RankBooks {
 public:
  explicit RankBooks(const BookedRank& rank) : rank_(rank.rank), owner_(rank.owner) {}

  /// Whether the rank may hold `bytes` more with such a capacity, as of now.
  [[nodiscard]] bool has_room_for(std::int64_t bytes, std::int64_t capacity) const noexcept;
  /// Books an allocation that was made in `phase`; false, and nothing is booked, if it does not fit.
  bool add(std::int64_t bytes, accounting::Phase phase, std::int64_t capacity) noexcept;
  /// Books the free of an allocation that was made in `phase`.
  void remove(std::int64_t bytes, accounting::Phase phase) noexcept;

  [[nodiscard]] MemoryReport report() const;
  /// Peaks are counted from now: what is live is the peak, and no phase has one.
  void reset_peaks() noexcept;

 private:
  using Count = std::atomic<std::int64_t>;
  struct PhaseCounts {
    Count live{0};
    Count peak{0};
  };
  static constexpr std::size_t kNumPhases = static_cast<std::size_t>(accounting::Phase::other) + 1;

  PhaseCounts& counts_of(accounting::Phase phase) noexcept { return phases_[static_cast<std::size_t>(phase)]; }
  static void raise(Count& peak, std::int64_t value) noexcept;

  const int rank_;
  const std::weak_ptr<const void> owner_;  // tells the phase for as long as the rank is there
  Count live_{0};
  Count peak_{0};
  Count num_allocations_{0};
  std::array<PhaseCounts, kNumPhases> phases_{};
};

/// The books of all ranks that this process has had. They outlive their ranks: blocks may do so, too, and a rank's
/// report is read when it has ended.
class RankShelf {
 public:
  /// A rank's books, opened at its first call.
  RankBooks& books_of(const BookedRank& rank);
  /// In the order in which the books were opened.
  [[nodiscard]] std::vector<MemoryReport> reports() const;

 private:
  using ByOwner = std::map<std::weak_ptr<const void>, RankBooks*, std::owner_less<>>;

  mutable std::shared_mutex mutex_;
  std::list<RankBooks> books_;
  ByOwner by_owner_;  // another owner at the same address, later, is another rank's
};

}  // namespace lockstep::sim
