#include "lockstep/sim/device/rank_books.h"

#include <mutex>

namespace lockstep::sim {

using accounting::Phase;

void RankBooks::raise(Count& peak, std::int64_t value) noexcept {
  auto before = peak.load();
  while (before < value && !peak.compare_exchange_weak(before, value)) {
  }
}

bool RankBooks::has_room_for(std::int64_t bytes, std::int64_t capacity) const noexcept {
  return bytes <= capacity - live_.load();
}

bool RankBooks::add(std::int64_t bytes, Phase phase, std::int64_t capacity) noexcept {
  auto before = live_.load();
  do {
    if (bytes > capacity - before) return false;
  } while (!live_.compare_exchange_weak(before, before + bytes));
  ++num_allocations_;
  auto& counts = counts_of(phase);
  counts.live += bytes;
  raise(peak_, before + bytes);
  raise(counts.peak, before + bytes);
  return true;
}

void RankBooks::remove(std::int64_t bytes, Phase phase) noexcept {
  counts_of(phase).live -= bytes;
  const auto before = live_.fetch_sub(bytes);
  // The rank may have come into its present phase holding more than it will ever allocate there.
  if (const auto owner = owner_.lock()) raise(counts_of(phase_of(owner.get())).peak, before);
}

MemoryReport RankBooks::report() const {
  MemoryReport report{.rank = rank_, .live_bytes = live_, .peak_bytes = peak_, .num_allocations = num_allocations_};
  for (std::size_t i = 0; i < kNumPhases; ++i) {
    const PhaseMemory memory{.live_bytes = phases_[i].live, .peak_bytes = phases_[i].peak};
    if (memory != PhaseMemory{}) report.phases.emplace(static_cast<Phase>(i), memory);
  }
  return report;
}

void RankBooks::reset_peaks() noexcept {
  for (auto& counts : phases_) counts.peak = 0;
  peak_ = live_.load();
  raise(peak_, live_);  // what was allocated between these two
}

RankBooks& RankShelf::books_of(const BookedRank& rank) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = by_owner_.find(rank.owner); found != by_owner_.end()) return *found->second;
  }
  const std::unique_lock lock(mutex_);
  if (const auto found = by_owner_.find(rank.owner); found != by_owner_.end()) return *found->second;
  auto& books = books_.emplace_back(rank);
  by_owner_.emplace(rank.owner, &books);
  return books;
}

std::vector<MemoryReport> RankShelf::reports() const {
  const std::shared_lock lock(mutex_);
  std::vector<MemoryReport> reports;
  for (const auto& books : books_) reports.push_back(books.report());
  return reports;
}

}  // namespace lockstep::sim
