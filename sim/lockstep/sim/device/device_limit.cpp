#include "lockstep/sim/device/device_limit.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/sim/device/byte_size.h"
#include "lockstep/sim/device/rank_books.h"

namespace lockstep::sim {
namespace {

using accounting::Phase;

std::atomic<std::int64_t> capacity_bytes{kUnlimited};

std::string words_of(Phase phase) {
  return phase == Phase::other ? "outside any phase" : std::string(accounting::to_word(phase));
}

// What has the device's memory, largest first: "60.00 MiB is from forward, 512 bytes from step".
std::string holders(const MemoryReport& memory) {
  std::vector<std::pair<std::int64_t, Phase>> parts;
  for (const auto& [phase, part] : memory.phases) {
    if (part.live_bytes > 0) parts.emplace_back(part.live_bytes, phase);
  }
  if (parts.empty()) return "nothing is allocated";
  std::ranges::sort(parts, std::greater<>());
  std::string text;
  for (const auto& [bytes, phase] : parts) {
    const bool is_first = text.empty();
    text += (is_first ? "of the allocated memory " : ", ") + format_bytes(bytes) + (is_first ? " is from " : " from ") +
            words_of(phase);
  }
  return text;
}

// The phase whose allocations have most; `otherwise` where nothing is seen to be allocated.
Phase largest_holder(const MemoryReport& memory, Phase otherwise) {
  if (memory.phases.empty()) return otherwise;
  const auto live = [](const auto& entry) { return entry.second.live_bytes; };
  return std::ranges::max_element(memory.phases, {}, live)->first;
}

// By the phase whose allocations have most of the device, what a trainer does about them.
const char* advice(Phase phase) {
  switch (phase) {
    case Phase::load: return "Batches have most of it: load smaller ones, or fewer ahead.";
    case Phase::forward:
      return "Activations have most of it: use smaller batches and accumulate more of them, or recompute in backward.";
    case Phase::backward:
      return "Gradients have most of it: set them to none after each step, shard them, or use a smaller model.";
    case Phase::step: return "The optimizer's state has most of it: shard it, or use an optimizer that keeps less.";
    case Phase::eval:
      return "Evaluation has most of it: run it without gradients, and move results away batch by batch.";
    case Phase::save: return "Saving has most of it: save shard by shard.";
    case Phase::other:
      return "What the program keeps, model included, has most of it: free what is not needed, or use a smaller model.";
  }
  return "";
}

}  // namespace

void set_device_limit(std::optional<std::int64_t> bytes) {
  if (bytes && *bytes <= 0) {
    throw InvalidArgument({.where = "set_device_limit",
                           .expected = "a number of bytes above 0",
                           .got = std::to_string(*bytes),
                           .fix = "Pass nullopt for no limit."});
  }
  capacity_bytes = bytes.value_or(kUnlimited);
}

std::optional<std::int64_t> device_limit() noexcept {
  const auto bytes = device_capacity();
  return bytes == kUnlimited ? std::nullopt : std::optional(bytes);
}

std::int64_t device_capacity() noexcept { return capacity_bytes.load(std::memory_order_relaxed); }

void throw_out_of_memory(const MemoryReport& memory, Phase phase, std::int64_t bytes, std::int64_t capacity) {
  const auto free = std::max<std::int64_t>(capacity - memory.live_bytes, 0);
  const auto* const what_helps =
      bytes > capacity ? "This tensor alone is larger than the device." : advice(largest_holder(memory, phase));
  // The first words are those that batch-size finders look for (" out of memory."); one line, because reports show one.
  const auto message = "Simulated device out of memory. Tried to allocate " + format_bytes(bytes) +
                       ". Simulated device of rank " + std::to_string(memory.rank) + " has a total capacity of " +
                       format_bytes(capacity) + " of which " + format_bytes(free) + " is free. The rank is " +
                       (phase == Phase::other ? "" : "in ") + words_of(phase) + "; " + holders(memory) + ". " +
                       what_helps + " A larger device: lockstep sim --device-memory.";
  C10_THROW_ERROR(OutOfMemoryError, message);
}

}  // namespace lockstep::sim
