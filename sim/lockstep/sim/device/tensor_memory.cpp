#include "lockstep/sim/device/tensor_memory.h"

#include <c10/core/CPUAllocator.h>

#include <atomic>

#include "lockstep/base/error.h"
#include "lockstep/sim/device/booked_rank.h"
#include "lockstep/sim/device/counting_allocator.h"

namespace lockstep::sim {
namespace {

std::atomic<CountingAllocator*> installed{nullptr};

CountingAllocator* put_in_place() {
  constexpr std::uint8_t kPriority = 255;  // the highest: nobody takes its place unnoticed
  auto& allocator = CountingAllocator::instance();
  c10::SetCPUAllocator(&allocator, kPriority);
  if (c10::GetCPUAllocator() != &allocator) {
    throw NotSupported({.where = "TensorMemory",
                        .expected = "to be the process's CPU allocator",
                        .got = "another one, which was set with a higher priority",
                        .fix = "Set that one with a priority below 255."});
  }
  return &allocator;
}

RankBooks& books_here() { return rank_shelf().books_of(require_rank_of_caller()); }

}  // namespace

void TensorMemory::install() {
  static auto* const allocator = put_in_place();
  allocator->switch_to(true);
  installed = allocator;
}

void TensorMemory::switch_off() noexcept {
  if (auto* allocator = installed.load()) allocator->switch_to(false);
}

bool TensorMemory::is_on() noexcept {
  const auto* allocator = installed.load();
  return allocator != nullptr && allocator->is_on();
}

MemoryReport TensorMemory::report() { return books_here().report(); }

std::vector<MemoryReport> TensorMemory::reports() { return rank_shelf().reports(); }

void TensorMemory::reset_peaks() { books_here().reset_peaks(); }

}  // namespace lockstep::sim
