// Backends from shared libraries: the example trains between processes, and every fault is told before anything is
// sent.
#include <ATen/Functions.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/backend_plugin.h"
#include "lockstep/comm/comm_test_support.h"
#include "lockstep/comm/test_tensors.h"

namespace lockstep::comm {
namespace {

TEST(ExamplePlugin, CarriesTheReducerBetweenProcesses) {
  run_ranks({.backend = STORE_BACKEND, .size = 2}, [](TestRank& me) {
    const std::vector<at::Tensor> parameters{at::full({4, 8}, 0.5).requires_grad_(), at::zeros({4}).requires_grad_()};
    const std::vector<std::size_t> limit{64};
    const auto [buckets, sizes] = c10d::compute_bucket_assignment_by_size(parameters, limit);
    c10d::Reducer reducer(parameters, buckets, me.group.handle(), {false, false}, 1 << 20, false, false, {}, 1 << 20,
                          false, false, {});
    for (int step = 0; step < 2; ++step) {
      reducer.prepare_for_forward();
      const auto loss = at::linear(at::full({2, 8}, me.rank + 1.0), parameters[0], parameters[1]).sum();
      reducer.prepare_for_backward({loss});
      loss.backward();
      EXPECT_TRUE(same_bits(parameters[0].grad(), at::full({4, 8}, 3.0, at::kFloat)));  // 2 rows, of 1 and of 2
      parameters[0].mutable_grad().reset();
      parameters[1].mutable_grad().reset();
    }
  });
}

TEST(ExamplePlugin, DoesWhatItDeclaresAndNothingElse) {
  run_ranks({.backend = STORE_BACKEND, .size = 3}, [](TestRank& me) {
    const auto& group = me.group;
    const auto mean = at::full({2}, me.rank, at::kDouble);
    group.all_reduce(mean, {.op = ReduceOp::avg}).wait();
    EXPECT_TRUE(same_values(mean, at::ones({2}, at::kDouble)));
    const auto tensor = sample(me.rank, at::kShort, {3, 2}).t();
    group.broadcast(tensor, {.root = Member::global(2)}).wait();
    EXPECT_TRUE(same_bits(tensor, sample(2, at::kShort, {3, 2}).t()));

    const auto path = std::string(STORE_BACKEND);
    EXPECT_CONTAINS(message_of<NotSupported>([&] { group.all_reduce(at::ones({1}, at::kInt)).wait(); }),
                    path + " can reduce: Double, Float");
    EXPECT_CONTAINS(message_of<NotSupported>([&] { group.all_reduce(at::ones({1}), {.op = ReduceOp::max}).wait(); }),
                    "got max");
    EXPECT_CONTAINS(message_of<NotSupported>([&] { group.send(at::ones({1}), Member::global(0)).wait(); }),
                    "does not have this operation");
    // Declared as "allgather", but not in this form: what c10d::Backend says about it is NotSupported, too.
    EXPECT_CONTAINS(message_of<NotSupported>([&] {
                      const std::vector<at::Tensor> one{at::zeros({1})};
                      group.all_gather_coalesced({one, one, one}, one).wait();
                    }),
                    "allgather_coalesced");
    const auto all = at::zeros({3});
    group.all_gather(all, at::full({1}, me.rank, at::kFloat)).wait();
    EXPECT_TRUE(same_values(all, at::arange(3, at::kFloat)));

    const auto pair = group.new_group({2, 0});
    if (pair) {
      const auto sum = at::full({1}, me.rank, at::kFloat);
      pair.all_reduce(sum).wait();
      EXPECT_EQ(sum.item<float>(), 2);
    }
    group.barrier().wait();
  });
}

std::string refusal(const std::string& path) {
  return message_of<Error>([&path] {
    static_cast<void>(ProcessGroup::create(Store::hash(std::chrono::seconds(1)), {0}, 0, {.backend = path},
                                           std::make_shared<accounting::Account>(0), nullptr));
  });
}

TEST(FaultyPlugin, AnotherAbiIsRefusedWithBothStrings) {
  const auto text = refusal(OTHER_ABI_PLUGIN);
  EXPECT_CONTAINS(text, std::string("expected ABI \"") + LOCKSTEP_BACKEND_ABI + "\"");
  EXPECT_CONTAINS(text, "got ABI \"1;torch=1.0.0;cxx11=0\"");
  EXPECT_CONTAINS(text, OTHER_ABI_PLUGIN);
}

TEST(FaultyPlugin, ALibraryThatIsNoPlugInIsRefused) {
  EXPECT_CONTAINS(refusal(EMPTY_PLUGIN), "no lockstep_backend_abi_v1");
  EXPECT_CONTAINS(refusal("/nowhere/libnothing.so"), "/nowhere/libnothing.so: cannot open shared object file");
  EXPECT_CONTAINS(refusal("/proc/self/cmdline"), "a shared library that can be loaded");
}

TEST(FaultyPlugin, TheReasonForMakingNothingIsTold) {
  const auto text = refusal(FAILING_PLUGIN);
  EXPECT_CONTAINS(text, "no device, with options");
  EXPECT_CONTAINS(text, R"("group":"world")");
  EXPECT_CONTAINS(text, R"("timeout_ms":1800000)");
}

}  // namespace
}  // namespace lockstep::comm
