// Ranks that are threads: all that every backend does, and what only this one promises, a mismatch named at once.
#include <ATen/Functions.h>

#include <chrono>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/comm/comm_test_support.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

INSTANTIATE_TEST_SUITE_P(Threads, CollectiveTest,
                         testing::Values(TestWorld{.size = 2}, TestWorld{.size = 3}, TestWorld{.size = 4},
                                         TestWorld{.size = 16}),
                         name_of);

// M3: float32 and int32 have the same bytes.
TEST(ThreadsBackend, NamesEveryRanksCallWhenTheyDiffer) {
  run_ranks({.size = 3}, [](TestRank& me) {
    const auto text = message_of<CollectiveMismatch>(
        [&] { me.group.all_reduce(at::ones({2}, me.rank == 1 ? at::kInt : at::kFloat)).wait(); });
    EXPECT_CONTAINS(text, "rank 1: allreduce Int[2] sum");
    EXPECT_CONTAINS(text, "ranks 0, 2: allreduce Float[2] sum");

    const auto other = message_of<CollectiveMismatch>([&] {
      if (me.rank == 0) me.group.barrier().wait();
      if (me.rank == 1) me.group.all_reduce(at::ones({2, 1}), {.op = ReduceOp::max}).wait();
      if (me.rank == 2) me.group.broadcast(at::ones({2}), {.root = Member::global(1)}).wait();
    });
    EXPECT_CONTAINS(other, "rank 0: barrier");
    EXPECT_CONTAINS(other, "rank 1: allreduce Float[2, 1] max");
    EXPECT_CONTAINS(other, "rank 2: broadcast Float[2] from 1");

    const auto tensor = at::ones({1});
    me.group.all_reduce(tensor).wait();  // the group lives on
    EXPECT_EQ(tensor.item<float>(), 3);
  });
}

TEST(ThreadsBackend, NamesGlobalRanksInSubgroups) {
  run_ranks({.size = 4}, [](TestRank& me) {
    const auto group = me.group.new_group({3, 1});
    if (!group) return;
    const auto text = message_of<CollectiveMismatch>([&] { group.all_reduce(at::ones({me.rank})).wait(); });
    EXPECT_CONTAINS(text, "rank 1: allreduce Float[1] sum");
    EXPECT_CONTAINS(text, "rank 3: allreduce Float[3] sum");
  });
}

// M7: both ends are refused, with both sizes.
TEST(ThreadsBackend, RefusesAReceiveOfAnotherLengthThanTheSend) {
  run_ranks({.size = 2}, [](TestRank& me) {
    for (const auto& [sent, received] : {std::pair{4, 2}, std::pair{2, 4}}) {
      const auto text = message_of<CollectiveMismatch>([&, sent = sent, received = received] {
        if (me.rank == 0) me.group.send(at::ones({sent}), Member::global(1)).wait();
        if (me.rank == 1) me.group.receive(at::ones({received}), Member::global(0)).wait();
      });
      EXPECT_CONTAINS(text, std::to_string(sent) + " elements of Float");
      EXPECT_CONTAINS(text, "a receive of " + std::to_string(received));
    }
    const auto text = message_of<CollectiveMismatch>([&] {
      me.group
          .all_to_all(at::zeros({2}), at::zeros({2}), {.output_splits = {1, 1}, .input_splits = {me.rank, 2 - me.rank}})
          .wait();
    });
    EXPECT_CONTAINS(text, "alltoall");
  });
}

TEST(ThreadsBackend, RefusesOutputsOfAnotherSizeOrDtype) {
  run_ranks({.size = 2}, [](TestRank& me) {
    const std::vector<at::Tensor> wide{at::zeros({3}), at::zeros({3})};
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { me.group.all_gather(wide, at::ones({1})).wait(); }),
                    "1 elements of Float");
    const std::vector<at::Tensor> whole{at::zeros({1}, at::kLong), at::zeros({1}, at::kLong)};
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { me.group.all_gather(whole, at::ones({1})).wait(); }),
                    "elements of Long");
  });
}

TEST(ThreadsBackend, AWaitEndsWithTheTimeOut) {
  run_ranks({.size = 2, .timeout = milliseconds(200)}, [](TestRank& me) {
    if (me.rank == 1) return;
    const auto start = steady_clock::now();
    EXPECT_CONTAINS(message_of<std::exception>([&] { me.group.barrier().wait(); }), "timed out");
    EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
  });
}

TEST(ThreadsBackend, AbortEndsThoseWhoWaitAndThoseWhoCome) {
  run_ranks({.size = 3}, [](TestRank& me) {
    if (me.rank == 2) {
      std::this_thread::sleep_for(milliseconds(50));
      me.group.abort();
      return;
    }
    const auto waits = [&] {
      if (me.rank == 0) me.group.barrier().wait();
      if (me.rank == 1) me.group.receive(at::zeros({1}), Member::global(2)).wait();
    };
    EXPECT_CONTAINS(message_of<std::runtime_error>(waits), "rank 2 of the group left it");
    EXPECT_CONTAINS(message_of<std::runtime_error>([&] { me.group.barrier().wait(); }), "left it");
  });
}

TEST(ThreadsBackend, AMonitoredBarrierNamesThoseWhoDoNotCome) {
  run_ranks({.size = 3}, [](TestRank& me) {
    if (me.rank == 2) return;
    const auto text = message_of<Timeout>([&] { me.group.monitored_barrier(milliseconds(200)); });
    EXPECT_CONTAINS(text, "ranks 2");
    EXPECT_CONTAINS(text, "within 0.2 s");
  });
}

TEST(ThreadsBackend, ALostRanksReasonReachesTheOthers) {
  run_ranks({.size = 3, .with_failure_board = true}, [](TestRank& me) {
    if (me.rank == 1) {
      me.failures->post({.rank = 1, .kind = "ValueError", .message = "no such file", .step = 7});
      me.group.abort();
      return;
    }
    try {
      me.group.all_reduce(at::ones({1})).wait();
      ADD_FAILURE() << "no error";
    } catch (const RankLost& lost) {
      EXPECT_EQ(lost.rank(), 1);
      EXPECT_CONTAINS(lost.what(), "ValueError: no such file");
      EXPECT_CONTAINS(lost.what(), "allreduce #1 of group world");
    }
  });
}

TEST(Backends, AreRefusedByNameWithThoseThatThereAre) {
  const auto text = message_of<InvalidArgument>([] {
    static_cast<void>(ProcessGroup::create(Store::hash(milliseconds(1000)), {0}, 0, {.backend = "mpi"},
                                           std::make_shared<accounting::Account>(0), nullptr));
  });
  EXPECT_CONTAINS(text, "gloo, threads");
  EXPECT_CONTAINS(text, "'mpi'");
}

TEST(ThreadsBackend, RefusesRanksOfAnotherProcess) {
  // A group id in the store that no rank of this process has put there.
  auto store = Store::hash(milliseconds(1000));
  store.set("world/threads/group", "4711");
  const auto text = message_of<RuntimeError>([&store] {
    static_cast<void>(ProcessGroup::create(store, {0, 1}, 1, {.backend = "threads"},
                                           std::make_shared<accounting::Account>(1), nullptr));
  });
  EXPECT_CONTAINS(text, "all ranks in one process");
}

}  // namespace
}  // namespace lockstep::comm
