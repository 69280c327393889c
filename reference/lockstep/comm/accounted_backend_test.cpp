// What stands before every backend: refusals and counts, and c10d's reducer on top.
#include <ATen/Functions.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/comm_test_support.h"
#include "lockstep/comm/test_tensors.h"

namespace lockstep::comm {
namespace {

// Each is refused on all ranks alike before anything is sent, so that the group works on afterwards.
TEST_P(CollectiveTest, RefusesWhatCannotBeDone) {
  run([](TestRank& me) {
    const auto& group = me.group;
    const auto mean =
        message_of<RuntimeError>([&] { group.all_reduce(at::ones({2}, at::kLong), {.op = ReduceOp::avg}).wait(); });
    EXPECT_CONTAINS(mean, "allreduce");
    EXPECT_CONTAINS(mean, "Long");
    EXPECT_CONTAINS(mean, "mean");
    EXPECT_CONTAINS(message_of<NotSupported>([&] { group.all_reduce(at::ones({2}), {.op = ReduceOp::bor}).wait(); }),
                    "bor");
    const auto largest = [&] { group.all_reduce(at::ones({2}, at::kComplexFloat), {.op = ReduceOp::max}).wait(); };
    EXPECT_CONTAINS(message_of<NotSupported>(largest), "max of ComplexFloat");
    const auto tiny = at::ones({2}).to(at::kFloat8_e4m3fn);
    const auto reductions = {
        std::pair<std::string, std::function<void()>>{"allreduce", [&] { group.all_reduce(tiny).wait(); }},
        {"reduce", [&] { group.reduce(tiny).wait(); }},
        {"reduce_scatter",
         [&] { group.reduce_scatter(tiny, Tensors(static_cast<std::size_t>(me.size), tiny)).wait(); }}};
    for (const auto& [operation, call] : reductions) {
      const auto text = message_of<NotSupported>(call);
      EXPECT_CONTAINS(text, operation);
      EXPECT_CONTAINS(text, "Float8_e4m3fn");
    }
    if (is_gloo()) {
      EXPECT_CONTAINS(message_of<NotSupported>([&] { group.all_reduce(at::ones({2}, at::kShort)).wait(); }), "Short");
    }
    const auto meta = at::empty({2}, at::TensorOptions(at::kMeta));
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.all_reduce(meta).wait(); }), "meta");

    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.all_gather(at::zeros({3}), at::zeros({2})).wait(); }),
                    "2 for each");
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.all_gather(Tensors(), at::zeros({2})).wait(); }),
                    "outputs");
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { group.reduce_scatter(at::zeros({2}), at::zeros({3})).wait(); }),
                    "whole");
    EXPECT_CONTAINS(
        message_of<InvalidArgument>([&] {
          group.all_to_all(at::zeros({1}), at::zeros({1}), {.output_splits = {5}, .input_splits = {1}}).wait();
        }),
        "Number of tensor splits");

    // Through c10d's own interface, as the reducer calls.
    auto& backend = *group.handle()->getBackend(at::kCPU);
    Tensors two{at::ones({1}), at::ones({1})};
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { backend.allreduce(two)->wait(); }), "a list of 2");
    Tensors one{at::ones({1})};
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { backend.broadcast(one, {.rootRank = 70})->wait(); }), "rank 70");

    const auto still = at::ones({1});
    group.all_reduce(still).wait();
    EXPECT_EQ(still.item<float>(), static_cast<float>(me.size));
  });
}

TEST_P(CollectiveTest, CountsEveryCall) {
  run([](TestRank& me) {
    const auto& group = me.group;
    const auto size = static_cast<std::int64_t>(me.size);
    std::vector<accounting::Collective> calls;
    std::vector<accounting::Reduced> reduced;
    const auto subscription = me.account->subscribe([&](const accounting::Stamp&, const accounting::Event& event) {
      if (const auto* call = std::get_if<accounting::Collective>(&event)) calls.push_back(*call);
      if (const auto* reduction = std::get_if<accounting::Reduced>(&event)) reduced.push_back(*reduction);
    });

    const auto weights = at::ones({2, 3});
    group.label(weights, {"fc.weight", "fc.bias"}, me.size);
    group.all_reduce(weights, {.op = ReduceOp::avg}).wait();
    group.unlabel(weights.const_data_ptr());
    group.all_reduce(weights).wait();
    group.broadcast(at::ones({4}, at::kShort), {.root = Member::global(1)}).wait();
    group.all_gather(at::zeros({size * 2}, at::kLong), at::ones({2}, at::kLong)).wait();
    group.reduce_scatter(at::zeros({2}), at::ones({size * 2})).wait();
    group.all_to_all(at::zeros({size}), at::ones({size})).wait();
    group.reduce(at::ones({5})).wait();
    const bool is_root = me.rank == 0;
    group.gather(is_root ? blanks(me.size, at::kFloat, {1}) : Tensors(), at::ones({1})).wait();
    group.scatter(at::zeros({1}), is_root ? blanks(me.size, at::kFloat, {1}) : Tensors()).wait();
    group.barrier().wait();
    if (me.rank == 0) group.send(at::ones({3}), Member::global(1), {.tag = 4}).wait();
    if (me.rank == 1) group.receive(at::ones({3}), Member::global(0), {.tag = 4}).wait();

    const auto traffic = me.account->traffic();
    using Count = accounting::TrafficCount;
    EXPECT_EQ(traffic.total("allreduce"), (Count{2, 12, 48}));
    EXPECT_EQ(traffic.total("broadcast"), (Count{1, 4, 8}));
    EXPECT_EQ(traffic.total("allgather"), (Count{1, 2, 16}));
    EXPECT_EQ(traffic.total("reduce_scatter"), (Count{1, 2 * size, 8 * size}));
    EXPECT_EQ(traffic.total("alltoall"), (Count{1, size, 4 * size}));
    EXPECT_EQ(traffic.total("reduce"), (Count{1, 5, 20}));
    EXPECT_EQ(traffic.total("gather"), (Count{1, 1, 4}));
    EXPECT_EQ(traffic.total("scatter"), is_root ? (Count{1, size, 4 * size}) : (Count{1, 1, 4}));
    EXPECT_EQ(traffic.total("barrier"), (Count{1, 0, 0}));
    EXPECT_EQ(traffic.total("send"), me.rank == 0 ? (Count{1, 3, 12}) : Count{});
    EXPECT_EQ(traffic.total("recv"), me.rank == 1 ? (Count{1, 3, 12}) : Count{});
    EXPECT_EQ(traffic.counts().at({"broadcast", "world", "Short"}), (Count{1, 4, 8}));

    ASSERT_EQ(calls.size(), me.rank < 2 ? 11U : 10U);
    for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i].seq, i + 1);
    const auto& first = calls[0];
    EXPECT_EQ(first.op, "allreduce");
    EXPECT_EQ(first.group, "world");
    EXPECT_EQ(first.ranks, group.ranks());
    EXPECT_EQ(first.dtype, "Float");
    EXPECT_EQ(first.elements, 6);
    EXPECT_EQ(first.bytes, 24);
    EXPECT_EQ(first.shapes, (std::vector<std::vector<std::int64_t>>{{2, 3}}));
    EXPECT_EQ(first.reduce_op, "avg");
    EXPECT_EQ(first.peer, -1);
    EXPECT_EQ(first.label, (std::vector<std::string>{"fc.weight", "fc.bias"}));
    EXPECT_TRUE(calls[1].label.empty());
    EXPECT_EQ(calls[2].peer, 1);
    EXPECT_EQ(calls[2].reduce_op, "");
    if (me.rank < 2) {
      EXPECT_EQ(calls.back().peer, 1 - me.rank);
      EXPECT_EQ(calls.back().tag, 4);
    }
    ASSERT_EQ(reduced.size(), 1U);
    EXPECT_EQ(reduced[0].parameters, first.label);
    EXPECT_EQ(reduced[0].divisor, me.size);
    EXPECT_EQ(reduced[0].bytes, 24);

    // What is refused is not counted.
    EXPECT_THROW(group.all_reduce(at::ones({1}, at::kInt), {.op = ReduceOp::avg}).wait(), RuntimeError);
    EXPECT_EQ(me.account->traffic().since(traffic).total(), Count{});
  });
}

// One layer under c10d's reducer: gradients are the mean over the ranks, and the same bits on all of them.
TEST_P(CollectiveTest, CarriesTheReducerOfDistributedDataParallel) {
  run([](TestRank& me) {
    at::manual_seed(3);
    const Tensors parameters{at::full({4, 8}, 0.5).requires_grad_(), at::zeros({4}).requires_grad_()};
    const std::vector<std::size_t> limit{64};  // bytes: a bucket for each parameter
    const auto [buckets, sizes] = c10d::compute_bucket_assignment_by_size(parameters, limit);
    c10d::Reducer reducer(parameters, buckets, me.group.handle(), {false, false}, 1 << 20, false, false, {}, 1 << 20,
                          false, false, {});
    for (int step = 0; step < 3; ++step) {
      reducer.prepare_for_forward();
      const auto input = at::linspace(0, 1, 16).view({2, 8}) * (me.rank + 1 + step);
      const auto loss = at::linear(input, parameters[0], parameters[1]).pow(2).mean();
      reducer.prepare_for_backward({loss});
      loss.backward();
      for (const auto& parameter : parameters) {
        const auto all = blanks(me.size, at::kFloat, parameter.sizes());
        me.group.all_gather(all, parameter.grad()).wait();
        for (const auto& other : all) EXPECT_TRUE(same_bits(other, parameter.grad()));
      }
      if (step == 0) {
        // loss = mean(y^2), y = 0.5 * sum(x) for each of 4 outputs; d loss / d bias_j = sum_rows(y) / 4
        double mean = 0;
        for (int rank = 0; rank < me.size; ++rank) mean += 0.5 * 8.0 * (rank + 1) / 4 / me.size;
        EXPECT_NEAR(parameters[1].grad()[0].item<double>(), mean, 1e-5 * mean);
      }
      const at::NoGradGuard no_grad;
      for (const auto& parameter : parameters) {
        parameter.sub_(parameter.grad(), 1e-2);
        parameter.mutable_grad().reset();
      }
    }
    EXPECT_GE(me.account->traffic().total("allreduce").calls, 6);
  });
}

}  // namespace
}  // namespace lockstep::comm
