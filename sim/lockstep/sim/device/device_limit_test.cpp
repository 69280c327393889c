// The pretend device refuses as a real one does, and leaves everything as it was.
#include "lockstep/sim/device/device_limit.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/sim/device/test_support/counted_memory.h"
#include "run_ranks.h"

namespace lockstep::sim {
namespace {

using accounting::Phase;
using accounting::PhaseScope;

constexpr std::int64_t kMiB = 1 << 20;

using DeviceLimitTest = CountedMemory;

std::string refusal_of(std::int64_t bytes) {
  return test::message_of<c10::OutOfMemoryError>([bytes] { static_cast<void>(tensor_of(bytes)); });
}

TEST_F(DeviceLimitTest, ARefusedAllocationLeavesTheBooksAsTheyWere) {
  set_device_limit(64 * kMiB);
  as_new_rank(1, [] {
    auto keep = tensor_of(60 * kMiB);
    EXPECT_THROW(tensor_of(4 * kMiB + 1), c10::OutOfMemoryError);
    auto report = TensorMemory::report();
    EXPECT_EQ(report.live_bytes, 60 * kMiB);
    EXPECT_EQ(report.peak_bytes, 60 * kMiB);
    EXPECT_EQ(report.num_allocations, 1);

    { const auto last = tensor_of(4 * kMiB); }  // fits to the byte
    keep.reset();
    EXPECT_NO_THROW(tensor_of(64 * kMiB));
    report = TensorMemory::report();
    EXPECT_EQ(report.live_bytes, 0);
    EXPECT_EQ(report.peak_bytes, 64 * kMiB);
  });
}

TEST_F(DeviceLimitTest, TheErrorSaysWhatThereIsAndWhatHelps) {
  set_device_limit(64 * kMiB);
  as_new_rank(1, [] {
    const auto model = tensor_of(kMiB / 2);
    const PhaseScope phase(account_here(), Phase::forward);
    const auto activations = tensor_of(60 * kMiB);
    const auto text = refusal_of(20 * kMiB);
    EXPECT_EQ(
        text.substr(0, text.find('\n')),
        "Simulated device out of memory. Tried to allocate 20.00 MiB. Simulated device of rank 1 has a total capacity "
        "of 64.00 MiB of which 3.50 MiB is free. The rank is in forward; of the allocated memory 60.00 MiB is from "
        "forward, 512.00 KiB from outside any phase. Activations have most of it: use smaller batches and accumulate "
        "more of them, or recompute in backward. A larger device: lockstep sim --device-memory.");
  });
}

TEST_F(DeviceLimitTest, TheAdviceFollowsWhatHasTheMemory) {
  set_device_limit(1000);
  for (const auto& [phase, word] : std::map<Phase, std::string>{{Phase::load, "Batches"},
                                                                {Phase::backward, "Gradients"},
                                                                {Phase::step, "optimizer"},
                                                                {Phase::eval, "Evaluation"},
                                                                {Phase::save, "Saving"},
                                                                {Phase::other, "model"}}) {
    as_new_rank(0, [phase = phase, &word = word] {
      const PhaseScope scope(account_here(), phase);
      const auto most = tensor_of(900);
      const PhaseScope other_phase(account_here(), Phase::forward);
      const auto text = refusal_of(101);
      EXPECT_NE(text.find(word), std::string::npos) << text;
    });
  }
}

TEST_F(DeviceLimitTest, ATensorThatIsLargerThanTheDeviceIsToldSo) {
  set_device_limit(1000);
  as_new_rank(0, [] {
    const auto text = refusal_of(1001);
    EXPECT_NE(
        text.find("The rank is outside any phase; nothing is allocated. This tensor alone is larger than the device."),
        std::string::npos)
        << text;
  });
}

TEST_F(DeviceLimitTest, ATrainerMayCatchItAndGoOnWithLess) {
  set_device_limit(kMiB);
  as_new_rank(0, [] {
    torch::nn::Linear net(64, 64);
    const auto live = TensorMemory::report().live_bytes;
    int batch = 1 << 14;
    for (bool done = false; !done;) {
      try {
        net->forward(torch::ones({batch, 64})).sum().backward();
        done = true;
      } catch (const c10::OutOfMemoryError&) {
        net->zero_grad();
        EXPECT_EQ(TensorMemory::report().live_bytes, live);
        batch /= 2;
      }
    }
    EXPECT_GT(batch, 1 << 8);
    EXPECT_LT(batch, 1 << 14);
    EXPECT_LE(TensorMemory::report().peak_bytes, kMiB);
  });
}

TEST_F(DeviceLimitTest, EachThreadRankHasADeviceOfItsOwn) {
  set_device_limit(kMiB);
  test::run_thread_ranks(4, [] {
    const auto rank = state::RankContext::current().thread_world().rank;
    const auto most = tensor_of(kMiB - rank);
    const auto text = refusal_of(rank + 1);
    EXPECT_NE(text.find("of rank " + std::to_string(rank) + " has"), std::string::npos) << text;
    EXPECT_NE(text.find("of which " + std::to_string(rank) + " bytes is free"), std::string::npos) << text;
  });
}

TEST_F(DeviceLimitTest, ThreadsOfOneRankNeverPassItTogether) {
  constexpr std::int64_t kBlock = 1000;
  set_device_limit(5 * kBlock + 1);
  as_new_rank(0, [] {
    std::atomic<int> num_done = 0;
    std::atomic<int> num_refused = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.push_back(state::RankContext::current().start_thread([&] {
        for (int i = 0; i < 300; ++i) {
          try {
            const auto first = tensor_of(kBlock);
            const auto second = tensor_of(kBlock);
            num_done += 2;
          } catch (const c10::OutOfMemoryError&) {
            ++num_refused;
          }
        }
      }));
    }
    for (auto& thread : threads) thread.join();
    const auto report = TensorMemory::report();
    EXPECT_EQ(report.live_bytes, 0);
    EXPECT_LE(report.peak_bytes, 5 * kBlock);
    EXPECT_GE(report.num_allocations, num_done);
    EXPECT_LE(report.num_allocations, num_done + num_refused);  // the first of two went well, at most
  });
}

TEST_F(DeviceLimitTest, ALimitBelowWhatIsLiveRefusesUntilEnoughIsFreed) {
  as_new_rank(0, [] {
    auto keep = tensor_of(2000);
    set_device_limit(1000);
    const auto text = refusal_of(1);
    EXPECT_NE(text.find("of which 0 bytes is free"), std::string::npos) << text;
    keep.reset();
    EXPECT_NO_THROW(tensor_of(1000));
  });
}

TEST_F(DeviceLimitTest, OffMeansNoLimit) {
  set_device_limit(10);
  TensorMemory::switch_off();
  as_new_rank(0, [] { EXPECT_NO_THROW(tensor_of(1000)); });
}

TEST_F(DeviceLimitTest, ItIsAboveNothing) {
  EXPECT_EQ(device_limit(), std::nullopt);
  set_device_limit(5);
  EXPECT_EQ(device_limit(), 5);
  const auto text = test::message_of<InvalidArgument>([] { set_device_limit(0); });
  EXPECT_NE(text.find("above 0, got 0"), std::string::npos) << text;
  EXPECT_EQ(device_limit(), 5);
}

}  // namespace
}  // namespace lockstep::sim
