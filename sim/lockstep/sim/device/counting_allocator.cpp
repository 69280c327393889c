#include "lockstep/sim/device/counting_allocator.h"

#include <c10/core/CPUAllocator.h>

#include "lockstep/base/error.h"
#include "lockstep/sim/device/booked_rank.h"
#include "lockstep/sim/device/device_limit.h"

namespace lockstep::sim {
namespace {

c10::Allocator& allocator_in_force() {
  auto* allocator = c10::GetCPUAllocator();
  if (allocator->raw_deleter() == nullptr) {
    throw NotSupported({.where = "TensorMemory",
                        .expected = "a CPU allocator that has a raw_deleter",
                        .got = "one without, which the program has installed",
                        .fix = "Count its tensors' memory before that one is installed, or do without either."});
  }
  return *allocator;
}

}  // namespace

RankShelf& rank_shelf() {
  static auto& shelf = *new RankShelf;
  return shelf;
}

CountingAllocator& CountingAllocator::instance() {
  static auto& allocator = *new CountingAllocator(allocator_in_force());
  return allocator;
}

c10::DataPtr CountingAllocator::allocate(std::size_t num_bytes) {
  if (!is_on()) return inner_.allocate(num_bytes);
  const auto bytes = static_cast<std::int64_t>(num_bytes);  // not above 0: none, or so many that the inner one refuses
  const auto rank = bytes > 0 ? rank_of_caller() : std::nullopt;
  if (!rank) return inner_.allocate(num_bytes);

  const auto phase = rank->phase;
  const auto capacity = device_capacity();
  auto& books = rank_shelf().books_of(*rank);
  if (!books.has_room_for(bytes, capacity)) throw_out_of_memory(books.report(), phase, bytes, capacity);
  auto data = inner_.allocate(num_bytes);
  blocks_.insert(data.get(), {.books = &books, .bytes = bytes, .phase = phase});
  if (!books.add(bytes, phase, capacity)) {  // another thread of the rank has taken the room meanwhile
    blocks_.take(data.get());
    throw_out_of_memory(books.report(), phase, bytes, capacity);
  }
  const bool is_ours = data.compare_exchange_deleter(inner_.raw_deleter(), &release);
  LOCKSTEP_ASSERT(is_ours);
  return data;
}

void CountingAllocator::release(void* address) {
  auto& self = instance();
  // Before the memory goes: afterwards its address may be another block's.
  if (const auto block = self.blocks_.take(address)) block->books->remove(block->bytes, block->phase);
  self.inner_.raw_deallocate(address);
}

bool CountingAllocator::is_simple_data_ptr(const c10::DataPtr& data) const { return inner_.is_simple_data_ptr(data); }

void CountingAllocator::copy_data(void* to, const void* from, std::size_t num_bytes) const {
  inner_.copy_data(to, from, num_bytes);
}

}  // namespace lockstep::sim
