#include "lockstep/sim/device/memory_setup.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/sim/device/test_support/counted_memory.h"
#include "run_ranks.h"

namespace lockstep::sim {
namespace {

using accounting::Phase;

class MemorySetup : public CountedMemory {
 protected:
  MemorySetup() { TensorMemory::switch_off(); }
};

TEST_F(MemorySetup, WithoutAWordAboutItNothingHappens) {
  for (const auto* spec : {"null", "{}", R"({"gear": "process"})", R"({"memory": false})"}) {
    set_up_memory(nlohmann::json::parse(spec));
    EXPECT_FALSE(TensorMemory::is_on()) << spec;
    EXPECT_EQ(device_limit(), std::nullopt) << spec;
  }
}

TEST_F(MemorySetup, MemoryIsCounted) {
  set_up_memory({{"memory", true}});
  EXPECT_TRUE(TensorMemory::is_on());
  EXPECT_EQ(device_limit(), std::nullopt);
}

TEST_F(MemorySetup, ALimitIsKept) {
  set_up_memory({{"device_memory_bytes", 64 << 20}});
  EXPECT_TRUE(TensorMemory::is_on());
  EXPECT_EQ(device_limit(), 64 << 20);
}

TEST_F(MemorySetup, WrongValuesAreNamed) {
  for (const auto* spec : {R"({"memory": "yes"})", R"({"device_memory_bytes": 0})", R"({"device_memory_bytes": -5})",
                           R"({"device_memory_bytes": 1.5})", R"({"device_memory_bytes": "64MiB"})",
                           R"({"device_memory_bytes": 18446744073709551615})"}) {
    const auto json = nlohmann::json::parse(spec);
    const auto text = test::message_of<InvalidArgument>([&json] { set_up_memory(json); });
    EXPECT_NE(text.find("LOCKSTEP_SIM_SPEC, " + json.begin().key()), std::string::npos) << text;
    EXPECT_NE(text.find("got " + json.begin()->dump()), std::string::npos) << text;
  }
  EXPECT_FALSE(TensorMemory::is_on());
}

TEST(MemorySummary, IsOneLineForARank) {
  EXPECT_EQ(memory_summary({.rank = 1,
                            .live_bytes = 3 << 20,
                            .peak_bytes = 63438848,
                            .num_allocations = 812,
                            .phases = {{Phase::forward, {.live_bytes = 0, .peak_bytes = 63438848}},
                                       {Phase::step, {.live_bytes = 2 << 20, .peak_bytes = 4 << 20}}}}),
            "memory of rank 1: 3.00 MiB live, 60.50 MiB at its peak, 812 allocations; by phase, live and peak: forward "
            "0 bytes, 60.50 MiB; step 2.00 MiB, 4.00 MiB");
  EXPECT_EQ(memory_summary({.rank = 0, .live_bytes = 5, .peak_bytes = 5, .num_allocations = 1}),
            "memory of rank 0: 5 bytes live, 5 bytes at its peak, 1 allocation");
}

}  // namespace
}  // namespace lockstep::sim
