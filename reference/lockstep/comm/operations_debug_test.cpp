// Debug mode of the operations: shapes and dtypes are compared before anything is sent.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <map>

#include "lockstep/comm/operations_test_support.h"

namespace lockstep::comm {
namespace {

void check_debug_mode(TestRank& me) {
  const auto group = debug_group(me);
  const auto uneven = at::ones({me.rank + 1, 2});
  const std::map<std::string, std::function<void()>> calls = {
      {"gather", [&] { gather(uneven, group); }},
      {"reduce", [&] { reduce(uneven, group, Reduction::sum); }},
      {"broadcast", [&] { broadcast(uneven, group); }},
  };
  for (const auto& [operation, call] : calls) {
    const auto text = message_of<CollectiveMismatch>(call);
    EXPECT_CONTAINS(text, operation);
    EXPECT_CONTAINS(text, "Process 0: [1, 2]");
    EXPECT_CONTAINS(text, "Process 1: [2, 2]");
    EXPECT_CONTAINS(text, "Process 2: [3, 2]");
  }
  expect_tensor(gather(at::full({1}, me.rank), group), {0, 1, 2}, {3});  // and the group still works
  const auto nested = me.rank == 1 ? Value::dict({{"x", at::ones({1})}, {"y", at::ones({2})}})
                                   : Value::dict({{"x", at::ones({1})}, {"y", at::ones({1})}});
  EXPECT_CONTAINS(message_of<CollectiveMismatch>([&] { gather(nested, group); }), "Process 1: x [1], y [2]");
}
TEST(OPS_040, ADifferenceIsNamedOnEveryRankWithTheShapesOfAll) { check_on_threads(check_debug_mode); }

TEST(OPS_040, TheSameGroupIsHadInBothModes) {
  check_on_threads([](TestRank& me) {
    const auto group = debug_group(me).with_debug(false);
    EXPECT_FALSE(group.debug());
    const auto checked = group.with_debug(true);
    const auto uneven = at::ones({me.rank + 1});
    EXPECT_CONTAINS(message_of<CollectiveMismatch>([&] { gather(uneven, checked); }), "Process 1: [2]");
    expect_tensor(gather(at::full({1}, me.rank), group), {0, 1, 2}, {3});
    EXPECT_FALSE(ProcessGroup().with_debug(true));
  });
}

void check_debug_device(TestRank& me) {
  const auto group = debug_group(me);
  const auto meta = at::ones({1}, at::device(at::kMeta));
  const auto text = message_of<CollectiveMismatch>([&] { gather(me.rank == 2 ? meta : at::ones({1}), group); });
  EXPECT_CONTAINS(text, "Process 2: [1] Float on meta");
  EXPECT_CONTAINS(text, "Process 0: [1] Float\n");
}
TEST(OPS_041, ATensorOnAnotherKindOfDeviceIsAMismatch) { check_on_threads(check_debug_device); }

TEST(OPS_041, PaddingNeedsEqualNumbersOfDimensionsAndStillPads) {
  check_on_threads([](TestRank& me) {
    const auto group = debug_group(me);
    const auto odd = me.rank == 1 ? at::ones({2}) : at::ones({1, 2});
    EXPECT_CONTAINS(message_of<CollectiveMismatch>([&] { pad_across_processes(odd, group, {.dim = 1}); }),
                    "pad_across_processes");
    EXPECT_EQ(pad_across_processes(at::ones({me.rank + 1}), group).tensor().size(0), 3);
  });
}

// Stricter than recorded, where dtypes are not compared: raising earlier conforms.
TEST(OPS_042, DtypesAreComparedToo) {
  check_on_threads([](TestRank& me) {
    const auto tensor = at::ones({2}, me.rank == 0 ? at::kFloat : at::kInt);
    const auto text = message_of<CollectiveMismatch>([&] { reduce(tensor, debug_group(me), Reduction::sum); });
    EXPECT_CONTAINS(text, "Process 0: [2] Float");
    EXPECT_CONTAINS(text, "Process 1: [2] Int");
  });
}

TEST(OPS_042, InputWithoutTensorsIsATypeError) {
  check_on_threads([](TestRank& me) {
    const auto group = debug_group(me);
    EXPECT_THROW(gather(Value::list({"x"}), group), TypeError);
    EXPECT_THROW(gather(Value::list({}), group), TypeError);
  });
}

// What only one rank does wrong is told to all, so that none is left waiting.
TEST(OPS_042, ARankWithoutTensorsDoesNotLeaveTheOthersWaiting) {
  check_on_threads([](TestRank& me) {
    const auto group = debug_group(me);
    if (me.rank == 1) {
      EXPECT_THROW(gather("x", group), TypeError);
    } else {
      EXPECT_CONTAINS(message_of<CollectiveMismatch>([&] { gather(at::ones({1}), group); }), "Process 1: string");
    }
  });
}

TEST(Operations, CompareTheSameBetweenProcessesOverGloo) { check_over_gloo({check_debug_mode}); }

TEST(OPS_041, OverGlooOnlyTensorsOfTheCpuAreTaken) {
  at::set_num_threads(1);
  run_ranks({.backend = "gloo"}, [](TestRank& me) {
    const auto meta = at::ones({1}, at::device(at::kMeta));
    EXPECT_CONTAINS(message_of<CollectiveMismatch>([&] { gather(meta, debug_group(me)); }), "backend gloo");
  });
}

}  // namespace
}  // namespace lockstep::comm
