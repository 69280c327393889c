// Ranks that are processes, over Gloo: all that every backend does, and how the loss of a rank shows.
#include <ATen/Functions.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/comm/comm_test_support.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

INSTANTIATE_TEST_SUITE_P(Gloo, CollectiveTest,
                         testing::Values(TestWorld{.backend = "gloo", .size = 2},
                                         TestWorld{.backend = "gloo", .size = 3},
                                         TestWorld{.backend = "gloo", .size = 4}),
                         name_of);

// The checked backend over Gloo does all that Gloo does.
INSTANTIATE_TEST_SUITE_P(Checked, CollectiveTest, testing::Values(TestWorld{.backend = "checked", .size = 3}), name_of);

// Ends when rank `rank` has said that it is done, so that who plays the failed rank stays alive until then.
void wait_for(const TestRank& me, int rank) { me.store.wait({"done/" + std::to_string(rank)}, milliseconds(15000)); }
void say_done(TestRank& me) { me.store.set("done/" + std::to_string(me.rank), ""); }

RankLost loss_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const RankLost& lost) {
    return lost;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not RankLost: " << error.what();
  }
  return RankLost(-1, "nobody", "");
}

TEST(GlooFailures, ARankThatAbortsEndsTheOthersWaitsThoughItLives) {
  run_ranks({.backend = "gloo", .size = 3, .with_failure_board = true}, [](TestRank& me) {
    me.group.barrier().wait();
    if (me.rank == 0) {
      auto posted = me.group.all_reduce(at::ones({4}));  // even with a call of its own still open
      me.failures->post({.rank = 0, .kind = "ValueError", .message = "bad sample", .step = 2});
      me.group.abort();
      EXPECT_THROW(posted.wait(), std::exception);
      for (const int other : {1, 2}) wait_for(me, other);
      return;
    }
    const auto start = steady_clock::now();
    const auto lost = loss_of([&] { me.group.barrier().wait(); });
    EXPECT_LT(steady_clock::now() - start, milliseconds(3000));
    EXPECT_EQ(lost.rank(), 0);
    EXPECT_EQ(lost.cause(), "ValueError: bad sample");
    say_done(me);
  });
}

TEST(GlooFailures, AKilledRankIsNamed) {
  run_ranks({.backend = "gloo", .size = 3, .with_failure_board = true, .killed = {2}}, [](TestRank& me) {
    me.group.barrier().wait();
    if (me.rank == 2) kill(getpid(), SIGKILL);
    const auto start = steady_clock::now();
    const auto lost = loss_of([&] { me.group.all_reduce(at::ones({1000})).wait(); });
    EXPECT_LT(steady_clock::now() - start, milliseconds(4000));
    EXPECT_EQ(lost.rank(), 2);
    EXPECT_CONTAINS(lost.cause(), "is gone");
  });
}

TEST(GlooFailures, AStoppedRankIsNamedWhenTheTimeIsOut) {
  run_ranks({.backend = "gloo", .size = 2, .timeout = milliseconds(1500), .with_failure_board = true, .killed = {1}},
            [](TestRank& me) {
              me.group.barrier().wait();
              if (me.rank == 1) {
                me.store.set("pid", std::to_string(getpid()));
                raise(SIGSTOP);
                return;
              }
              const auto lost = loss_of([&] { me.group.barrier().wait(); });
              EXPECT_EQ(lost.rank(), 1);
              EXPECT_CONTAINS(lost.cause(), "stands still");
              kill(std::stoi(me.store.get("pid")), SIGKILL);
            });
}

TEST(GlooFailures, ARankThatNeverCallsIsNamedWhenTheTimeIsOut) {
  run_ranks({.backend = "gloo", .size = 2, .timeout = milliseconds(1000), .with_failure_board = true},
            [](TestRank& me) {
              me.group.barrier().wait();
              if (me.rank == 1) return wait_for(me, 0);
              const auto lost = loss_of([&] { me.group.all_reduce(at::ones({1})).wait(); });
              EXPECT_EQ(lost.rank(), 1);
              EXPECT_CONTAINS(lost.cause(), "no sign of it since step 0, while allreduce #2 of group world waited");
              say_done(me);
            });
}

TEST(GlooFailures, RanksThatWaitForEachOtherAreToldInWhichCalls) {
  run_ranks({.backend = "gloo", .size = 2, .timeout = milliseconds(1000), .with_failure_board = true},
            [](TestRank& me) {
              const auto other = Member::global(1 - me.rank);
              const auto text =
                  message_of<Timeout>([&] { me.group.receive(at::ones({1}), other, {.tag = 5 + me.rank}).wait(); });
              EXPECT_CONTAINS(text, "rank 0 in recv #1 of group world");
              EXPECT_CONTAINS(text, "rank 1 in recv #1 of group world");
              say_done(me);
              wait_for(me, other.rank);
            });
}

TEST(GlooFailures, AMonitoredBarrierNamesThoseWhoDoNotCome) {
  run_ranks({.backend = "gloo", .size = 3}, [](TestRank& me) {
    if (me.rank == 0) {
      const auto text =
          message_of<Timeout>([&] { me.group.monitored_barrier(milliseconds(500), /*wait_all_ranks=*/true); });
      EXPECT_CONTAINS(text, "Ranks 2");
      say_done(me);
    }
    if (me.rank == 1) {
      // Without its acknowledgement by rank 0 it cannot pass either.
      EXPECT_THROW(me.group.monitored_barrier(milliseconds(1500)), Timeout);
    }
    wait_for(me, 0);
  });
}

TEST(Gloo, RefusesAnInterfaceThatThereIsNot) {
  const auto text = message_of<std::exception>([] {
    static_cast<void>(ProcessGroup::create(Store::hash(milliseconds(1000)), {0}, 0,
                                           {.backend = "gloo", .network_interface = "nowhere0"},
                                           std::make_shared<accounting::Account>(0), nullptr));
  });
  EXPECT_CONTAINS(text, "nowhere0");
}

TEST(Gloo, AGroupThatNotAllComeToIsATimeout) {
  const TemporaryFolder folder;
  const auto start = steady_clock::now();
  const auto text = message_of<std::exception>([&folder] {
    const auto store = Store::file(folder.file("store"), 2, milliseconds(800));
    static_cast<void>(ProcessGroup::create(store, {0, 1}, 0,
                                           {.backend = "gloo", .timeout = milliseconds(800), .network_interface = "lo"},
                                           std::make_shared<accounting::Account>(0), nullptr));
  });
  EXPECT_LT(steady_clock::now() - start, milliseconds(5000));
  EXPECT_FALSE(text.empty());
}

}  // namespace
}  // namespace lockstep::comm
