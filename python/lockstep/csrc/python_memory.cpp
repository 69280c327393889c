#include "python_memory.h"

#include <atomic>

#include "lockstep/sim/device/booked_rank.h"
#include "lockstep/sim/device/device_limit.h"
#include "lockstep/sim/device/tensor_memory.h"
#include "python_caller.h"

namespace lockstep::python {
namespace {

// A Python process is one rank. Which one is known when it makes its first group.
struct ProcessRank {
  std::atomic<int> rank{0};
};

const std::shared_ptr<ProcessRank>& process_rank() {
  static auto& rank = *new std::shared_ptr(std::make_shared<ProcessRank>());
  return rank;
}

}  // namespace

void count_memory(std::optional<std::int64_t> device_bytes) {
  sim::TensorMemory::install();
  sim::set_device_limit(device_bytes);
}

void set_memory_rank(int rank) { process_rank()->rank = rank; }

std::string memory_summary() {
  return sim::TensorMemory::is_on() ? sim::memory_summary(sim::TensorMemory::report()) : std::string();
}

}  // namespace lockstep::python

namespace lockstep::sim {

std::optional<BookedRank> rank_of_caller() noexcept { return require_rank_of_caller(); }

BookedRank require_rank_of_caller() {
  const auto& owner = python::process_rank();
  return {.owner = owner, .rank = owner->rank, .phase = python::current_phase()};
}

accounting::Phase phase_of(const void*) noexcept { return python::current_phase(); }

}  // namespace lockstep::sim
