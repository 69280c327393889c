#include "lockstep/comm/failure_board.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "lockstep/comm/comm_test_support.h"
#include "lockstep/comm/process_sighting.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void sleep_for_ever() {
  while (true) pause();
}
ProcessId id_of(const Child& child) {
  ProcessId id = this_process();
  id.pid = child.pid();
  id.start_time = start_time_of(child.pid()).value();
  return id;
}

TEST(ProcessSighting, SeesLifeAndDeath) {
  EXPECT_EQ(state_of(this_process()), ProcessState::alive);
  Child child(sleep_for_ever);
  const auto id = id_of(child);
  EXPECT_EQ(state_of(id), ProcessState::alive);
  child.signal(SIGSTOP);
  EXPECT_EQ(state_of(id), ProcessState::stopped);
  child.signal(SIGKILL);
  EXPECT_EQ(state_of(id), ProcessState::gone) << "a zombie";
  child.reap();
  EXPECT_EQ(state_of(id), ProcessState::gone) << "reaped";
}

TEST(ProcessSighting, KnowsThatANumberIsReused) {
  auto id = this_process();
  ++id.start_time;
  EXPECT_EQ(state_of(id), ProcessState::gone);
}

TEST(ProcessSighting, DoesNotGuessAboutOtherMachines) {
  auto id = this_process();
  id.host = "elsewhere";
  EXPECT_EQ(state_of(id), ProcessState::unknown);
}

TEST(FailureBoard, AnErrorIsFirstHandUnlessItIsAboutAPeer) {
  EXPECT_TRUE(is_first_hand(std::runtime_error("own")));
  EXPECT_TRUE(is_first_hand(Timeout("nobody knows why")));
  EXPECT_FALSE(is_first_hand(RankLost(1, "ended by signal 9", "barrier")));
  EXPECT_FALSE(is_first_hand(RelayedError("IndexError", 0, "no third item", "reading for all")));
}

/// A world of boards over one store; all ranks are this process unless a test says otherwise.
class Board : public testing::Test {
 protected:
  FailureBoard board(int rank) { return {store_, World{.rank = rank, .size = kSize}}; }
  void announce_all() {
    for (int rank = 0; rank < kSize; ++rank) board(rank).announce();
  }
  void announce_as(int rank, const ProcessId& id) {
    store_.set("lockstep/rank/" + std::to_string(rank),
               nlohmann::json{{"host", id.host}, {"pid", id.pid}, {"start", id.start_time}}.dump());
  }
  RankLost loss_seen_by(int rank, const std::exception& error) {
    try {
      board(rank).explain(error, "allreduce #4", 7, {0, 1, 2});
    } catch (const RankLost& lost) {
      return lost;
    } catch (const std::exception& other) {
      ADD_FAILURE() << "not RankLost: " << other.what();
    }
    return {-1, "nobody", ""};
  }

  static constexpr int kSize = 3;
  const std::runtime_error time_out_{"Timed out waiting 1500ms for recv operation to complete"};
  const std::runtime_error closed_{"Connection closed by peer [127.0.0.1]:1234"};
  Store store_ = Store::hash(milliseconds(2000));
};

TEST_F(Board, ARankIsOneProcess) {
  board(1).announce();
  EXPECT_NO_THROW(board(1).announce()) << "the same process may say so twice";
  Child other(sleep_for_ever);
  announce_as(0, id_of(other));
  const auto text = message_of<RuntimeError>([this] { board(0).announce(); });
  EXPECT_CONTAINS(text, "two processes with RANK=0");
  EXPECT_CONTAINS(text, "pid " + std::to_string(other.pid()));
  EXPECT_CONTAINS(text, "pid " + std::to_string(getpid()));
}

TEST_F(Board, WaitingForAllNamesThoseWhoNeverCame) {
  board(1).announce();
  const auto text = message_of<Timeout>([this] { board(1).wait_for_all(milliseconds(100)); });
  EXPECT_CONTAINS(text, "expected 3 ranks within 0.1 s");
  EXPECT_CONTAINS(text, "1 of 3: ranks 0, 2 never arrived");
  announce_all();
  EXPECT_NO_THROW(board(1).wait_for_all(milliseconds(100)));
}

TEST_F(Board, WaitingForAllEndsWhenOneFails) {
  board(0).announce();
  board(2).post({.rank = 2, .kind = "ValueError", .message = "bad flag"});
  const auto start = steady_clock::now();
  EXPECT_CONTAINS(message_of<RankLost>([this] { board(0).wait_for_all(milliseconds(10000)); }),
                  "rank 2 was lost: ValueError: bad flag");
  EXPECT_LT(steady_clock::now() - start, milliseconds(1000));
}

TEST_F(Board, TheFirstFailureStays) {
  EXPECT_EQ(board(0).first_failure(), std::nullopt);
  EXPECT_NO_THROW(board(0).throw_if_failed("x"));
  const FailureNote first{.rank = 2, .kind = "OSError", .message = "disk \xff full", .step = 5};
  board(2).post(first);
  board(1).post({.rank = 1, .kind = "RuntimeError", .message = "later"});
  const auto note = board(0).first_failure();
  ASSERT_TRUE(note);
  EXPECT_EQ(note->rank, 2);
  EXPECT_EQ(note->step, 5);
  EXPECT_CONTAINS(note->message, "disk");
  EXPECT_THROW(board(0).throw_if_failed("x"), RankLost);
}

TEST_F(Board, ExplainsByTheReasonThatTheRankGave) {
  announce_all();
  std::thread late([this] {
    std::this_thread::sleep_for(milliseconds(200));
    board(2).post({.rank = 2, .kind = "ValueError", .message = "no such file", .step = 3});
  });
  const auto lost = loss_seen_by(0, closed_);
  late.join();
  EXPECT_EQ(lost.rank(), 2);
  EXPECT_EQ(lost.cause(), "ValueError: no such file");
  EXPECT_CONTAINS(lost.what(), "noticed in allreduce #4");
}

TEST_F(Board, ExplainsByAProcessThatIsGoneAndAllTellTheSame) {
  announce_all();
  Child child(sleep_for_ever);
  announce_as(1, id_of(child));
  child.signal(SIGKILL);
  const auto lost = loss_seen_by(0, closed_);
  EXPECT_EQ(lost.rank(), 1);
  EXPECT_EQ(lost.cause(), "its process " + std::to_string(child.pid()) + " is gone and left no reason");
  EXPECT_EQ(loss_seen_by(2, closed_).cause(), lost.cause());
}

TEST_F(Board, ExplainsATimeOutByAProcessThatStandsStill) {
  announce_all();
  Child child(sleep_for_ever);
  announce_as(2, id_of(child));
  child.signal(SIGSTOP);
  const auto lost = loss_seen_by(0, time_out_);
  EXPECT_EQ(lost.rank(), 2);
  EXPECT_CONTAINS(lost.cause(), "stands still");
}

TEST_F(Board, ExplainsATimeOutByTheRankThatIsSilent) {
  announce_all();
  std::thread other([this] { EXPECT_EQ(loss_seen_by(2, time_out_).rank(), 1); });
  const auto lost = loss_seen_by(0, time_out_);
  other.join();
  EXPECT_EQ(lost.rank(), 1);
  EXPECT_CONTAINS(lost.cause(), "no sign of it since step 7");
}

TEST_F(Board, ATimeOutInWhichAllWaitListsTheirCalls) {
  announce_all();
  std::vector<std::thread> others;
  for (const int rank : {1, 2}) {
    others.emplace_back([this, rank] {
      EXPECT_THROW(board(rank).explain(time_out_, "barrier #" + std::to_string(rank), 7, {0, 1, 2}), Timeout);
    });
  }
  const auto text = message_of<Timeout>([this] { board(0).explain(time_out_, "allreduce #4", 7, {0, 1, 2}); });
  for (auto& other : others) other.join();
  EXPECT_CONTAINS(text, "rank 0 in allreduce #4, rank 1 in barrier #1, rank 2 in barrier #2");
}

TEST_F(Board, WhatNobodyExplainsKeepsItsText) {
  announce_all();
  const auto start = steady_clock::now();
  EXPECT_CONTAINS(message_of<RuntimeError>([this] {
                    board(0).explain(closed_, "allreduce #4", 7, {0, 1, 2});
                  }),
                  "allreduce #4: got Connection closed by peer");
  EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
}

TEST(BoardOverTcp, TheHostStaysUntilTheOthersHaveReadWhy) {
  const auto server = Store::tcp("127.0.0.1", 0, true, milliseconds(2000));
  FailureBoard host(server, {.rank = 0, .size = 2});
  host.post({.rank = 0, .kind = "ValueError", .message = "m"});
  auto start = steady_clock::now();
  host.outlive_readers(milliseconds(300));
  EXPECT_GE(steady_clock::now() - start, milliseconds(300));
  EXPECT_LT(steady_clock::now() - start, milliseconds(1000));

  FailureBoard reader(Store::tcp("127.0.0.1", server.port(), false, milliseconds(2000)), {.rank = 1, .size = 2});
  EXPECT_THROW(reader.throw_if_failed("x"), RankLost);
  EXPECT_THROW(reader.throw_if_failed("x"), RankLost);  // counted once
  start = steady_clock::now();
  host.outlive_readers();
  reader.outlive_readers();  // hosts nothing
  EXPECT_LT(steady_clock::now() - start, milliseconds(1000));
}

TEST(BoardOverTcp, AStoreThatIsGoneIsTheLossOfItsHost) {
  auto server = std::make_unique<Store>(Store::tcp("127.0.0.1", 0, true, milliseconds(1000)));
  FailureBoard reader(Store::tcp("127.0.0.1", server->port(), false, milliseconds(1000)), {.rank = 1, .size = 2});
  reader.announce();
  server.reset();
  try {
    reader.explain(std::runtime_error("Connection closed by peer"), "barrier #1", 0, {0, 1});
  } catch (const RankLost& lost) {
    EXPECT_EQ(lost.rank(), 0);
    EXPECT_CONTAINS(lost.cause(), "the store that it hosts does not answer");
  }
  EXPECT_NO_THROW(reader.post({.rank = 1, .kind = "x", .message = "y"}));
}

}  // namespace
}  // namespace lockstep::comm
