// Live and peak bytes are exact, per rank and phase, whoever frees.
#include "lockstep/sim/device/tensor_memory.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <thread>
#include <vector>

#include "lockstep/sim/device/test_support/counted_memory.h"
#include "run_ranks.h"

namespace lockstep::sim {
namespace {

using accounting::Phase;
using accounting::PhaseScope;

using TensorMemoryTest = CountedMemory;

TEST_F(TensorMemoryTest, ASequenceOfTensorsIsCountedToTheByte) {
  as_new_rank(3, [] {
    auto first = tensor_of(1000);
    auto second = at::empty({10, 7}, at::kDouble);  // 560 bytes
    EXPECT_EQ(TensorMemory::report().live_bytes, 1560);
    first.reset();
    const auto third = tensor_of(440);
    const auto view = third.slice(0, 100, 200);  // owns nothing
    auto report = TensorMemory::report();
    EXPECT_EQ(report.rank, 3);
    EXPECT_EQ(report.live_bytes, 1000);
    EXPECT_EQ(report.peak_bytes, 1560);
    EXPECT_EQ(report.num_allocations, 3);

    second.resize_({20, 7});  // the new storage, while the old one is still there: 440 + 560 + 1120
    report = TensorMemory::report();
    EXPECT_EQ(report.live_bytes, 1560);
    EXPECT_EQ(report.peak_bytes, 2120);
  });
}

TEST_F(TensorMemoryTest, NoBytesAreNoAllocation) {
  as_new_rank(0, [] {
    const auto none = at::empty({0, 5});
    EXPECT_EQ(TensorMemory::report().num_allocations, 0);
    EXPECT_EQ(none.data_ptr(), nullptr);
  });
}

TEST_F(TensorMemoryTest, WhatTheMachineRefusesIsNotBooked) {
  as_new_rank(0, [] {
    EXPECT_THROW(c10::GetCPUAllocator()->allocate(static_cast<std::size_t>(-64)), c10::Error);
    EXPECT_EQ(TensorMemory::report().peak_bytes, 0);
    EXPECT_EQ(TensorMemory::report().num_allocations, 0);
  });
}

TEST_F(TensorMemoryTest, BlocksAreAlignedAsLibTorchAlignsThem) {
  as_new_rank(0, [] {
    for (const std::int64_t bytes : {1, 63, 64, 65, 4097, 1 << 20}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor_of(bytes).data_ptr()) % c10::gAlignment, 0U) << bytes;
    }
  });
}

TEST_F(TensorMemoryTest, AFreeOnAnotherThreadIsBookedOnTheRankThatAllocated) {
  as_new_rank(0, [] {
    auto tensor = tensor_of(500);
    std::thread([&tensor] { tensor.reset(); }).join();  // of no rank
    EXPECT_EQ(TensorMemory::report().live_bytes, 0);
    tensor = tensor_of(300);
    as_new_rank(1, [&tensor] {
      tensor.reset();
      EXPECT_EQ(TensorMemory::report().live_bytes, 0);
    });
    EXPECT_EQ(TensorMemory::report().live_bytes, 0);
    EXPECT_EQ(TensorMemory::report().peak_bytes, 500);
  });
}

TEST_F(TensorMemoryTest, ABlockMayOutliveItsRank) {
  at::Tensor tensor;
  as_new_rank(0, [&tensor] { tensor = tensor_of(100); });
  EXPECT_EQ(TensorMemory::reports().back().live_bytes, 100);
  tensor.reset();
  EXPECT_EQ(TensorMemory::reports().back().live_bytes, 0);
}

TEST_F(TensorMemoryTest, FourThreadRanksHaveExactPeaksAtOnceAndGiveAllBytesBack) {
  const auto num_before = TensorMemory::reports().size();
  test::run_thread_ranks(4, [] {
    const auto rank = state::RankContext::current().thread_world().rank;
    for (int round = 0; round < 200; ++round) {
      const auto keep = tensor_of(1000 * (rank + 1));
      { const auto big = tensor_of(1 << 20); }
      const auto weight = at::ones({32, 32}).requires_grad_();
      weight.mm(weight).sum().backward();
    }
    const auto report = TensorMemory::report();
    EXPECT_EQ(report.peak_bytes, (1 << 20) + 1000 * (rank + 1));
    EXPECT_EQ(report.live_bytes, 0);
  });
  const auto reports = TensorMemory::reports();
  ASSERT_EQ(reports.size(), num_before + 4);
  std::map<int, std::int64_t> peaks;
  for (auto report = reports.end() - 4; report != reports.end(); ++report) {
    EXPECT_EQ(report->live_bytes, 0);
    peaks[report->rank] = report->peak_bytes - (1 << 20);
  }
  EXPECT_EQ(peaks, (std::map<int, std::int64_t>{{0, 1000}, {1, 2000}, {2, 3000}, {3, 4000}}));
}

TEST_F(TensorMemoryTest, ThreadsOfOneRankShareItsBooks) {
  as_new_rank(0, [] {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.push_back(state::RankContext::current().start_thread([thread] {
        std::vector<at::Tensor> kept(7);
        for (std::size_t i = 0; i < 2000; ++i) kept[i % kept.size()] = tensor_of(100 * (thread + 1));
      }));
    }
    for (auto& thread : threads) thread.join();
    const auto report = TensorMemory::report();
    EXPECT_EQ(report.live_bytes, 0);
    EXPECT_EQ(report.num_allocations, 8000);
    EXPECT_GE(report.peak_bytes, 7 * 400);
    EXPECT_LE(report.peak_bytes, 8 * (100 + 200 + 300 + 400));  // a new tensor is there before the old one goes
  });
}

TEST_F(TensorMemoryTest, AThreadOfNoRankIsNobodys) {
  const auto num_before = TensorMemory::reports().size();
  test::run_thread_ranks(1, [] { std::thread([] { EXPECT_TRUE(tensor_of(100).defined()); }).join(); });
  EXPECT_EQ(TensorMemory::reports().size(), num_before);
}

TEST_F(TensorMemoryTest, AProcessThatIsOneRankHasTheBytesOfAllItsThreads) {
  const auto before = TensorMemory::report();
  at::Tensor tensor;
  std::thread([&tensor] { tensor = tensor_of(12345); }).join();
  EXPECT_EQ(TensorMemory::report().live_bytes, before.live_bytes + 12345);
}

TEST_F(TensorMemoryTest, AnAllocationMakesNoRank) {
  state::reset_process_rank();
  const auto num_before = TensorMemory::reports().size();
  const auto tensor = tensor_of(100);
  EXPECT_EQ(state::RankContext::find(), nullptr);
  EXPECT_EQ(TensorMemory::reports().size(), num_before);
}

TEST_F(TensorMemoryTest, PhasesAreToldApart) {
  as_new_rank(0, [] {
    const auto model = tensor_of(1000);
    at::Tensor activation;
    {
      const PhaseScope phase(account_here(), Phase::forward);
      activation = tensor_of(500);
      { const auto scratch = tensor_of(300); }
    }
    {
      const PhaseScope phase(account_here(), Phase::backward);
      activation.reset();  // came in with 1500
      const auto gradient = tensor_of(100);
    }
    at::Tensor moments;
    {
      const PhaseScope phase(account_here(), Phase::step);
      moments = tensor_of(2000);
    }
    const auto report = TensorMemory::report();
    EXPECT_EQ(report.peak_bytes, 3000);
    EXPECT_EQ(report.phases, (std::map<Phase, PhaseMemory>{{Phase::forward, {.live_bytes = 0, .peak_bytes = 1800}},
                                                           {Phase::backward, {.live_bytes = 0, .peak_bytes = 1500}},
                                                           {Phase::step, {.live_bytes = 2000, .peak_bytes = 3000}},
                                                           {Phase::other, {.live_bytes = 1000, .peak_bytes = 1000}}}));
  });
}

TEST_F(TensorMemoryTest, PeaksCanBeCountedFromNow) {
  as_new_rank(0, [] {
    const auto keep = tensor_of(100);
    { const auto big = tensor_of(1000); }
    TensorMemory::reset_peaks();
    EXPECT_EQ(TensorMemory::report().peak_bytes, 100);
    { const auto small = tensor_of(50); }
    const auto report = TensorMemory::report();
    EXPECT_EQ(report.peak_bytes, 150);
    EXPECT_EQ(report.phases.at(Phase::other), (PhaseMemory{.live_bytes = 100, .peak_bytes = 150}));
  });
}

TEST_F(TensorMemoryTest, AnObserverMayAllocate) {
  as_new_rank(0, [] {
    at::Tensor kept;
    const auto observing = account_here().subscribe([&kept](const auto&, const auto&) { kept = tensor_of(64); });
    account_here().emit([] { return accounting::SchedulerStep{}; });
    EXPECT_EQ(TensorMemory::report().live_bytes, 64);
  });
}

TEST_F(TensorMemoryTest, WhatIsAllocatedWhileItIsOffIsNotCounted) {
  as_new_rank(0, [] {
    auto counted = tensor_of(100);
    TensorMemory::switch_off();
    EXPECT_FALSE(TensorMemory::is_on());
    auto uncounted = tensor_of(1000);
    counted.reset();
    EXPECT_EQ(TensorMemory::report().live_bytes, 0);
    TensorMemory::install();
    EXPECT_TRUE(TensorMemory::is_on());
    uncounted.reset();
    EXPECT_EQ(TensorMemory::report().live_bytes, 0);
    EXPECT_EQ(TensorMemory::report().peak_bytes, 100);
  });
}

TEST_F(TensorMemoryTest, RawBlocksMayComeFromBefore) {
  as_new_rank(0, [] {
    auto* allocator = c10::GetCPUAllocator();
    TensorMemory::switch_off();
    void* before = allocator->raw_allocate(100);
    TensorMemory::install();
    void* counted = allocator->raw_allocate(200);
    EXPECT_EQ(TensorMemory::report().live_bytes, 200);
    allocator->raw_deallocate(before);
    allocator->raw_deallocate(counted);
    allocator->raw_deallocate(allocator->raw_allocate(0));
    EXPECT_EQ(TensorMemory::report().live_bytes, 0);
  });
}

}  // namespace
}  // namespace lockstep::sim
