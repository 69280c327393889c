// Whole worlds on the checking core alone: processes that post calls and wait, without any backend.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "lockstep/sim/check/checked_group.h"
#include "lockstep/sim/check/monitor.h"

namespace lockstep::sim {
namespace {

/// What a rank of a test does with: calls that wait for their peers by looking at the board, as a backend would.
class TestRank {
 public:
  TestRank(const std::shared_ptr<Board>& board, int rank, CheckOptions options)
      : rank_(CheckedRank::join(board, rank, options, "", {})), monitor_(rank_) {
    std::vector<int> everyone;
    for (int i = 0; i < board->world_size(); ++i) everyone.push_back(i);
    world_ = group("world", everyone);
  }

  std::shared_ptr<CheckedGroup> group(const std::string& name, const std::vector<int>& ranks) {
    auto group = rank_->join_group(name, ranks);
    wait_until(group->rendezvous(), [&] {
      for (const int rank : ranks) {
        const auto& seat = rank_->board().seat(rank).groups[static_cast<std::size_t>(group->index())];
        if (seat.membership == layout::Membership::none) return false;
      }
      return true;
    });
    return group;
  }

  layout::Wait post(Operation operation, std::initializer_list<std::int64_t> sizes = {4}, int peer = -1, int tag = 0,
                    CheckedGroup* group = nullptr) {
    Shapes shapes;
    shapes.add(6, sizes);
    return (group != nullptr ? *group : *world_)
        .post({.operation = operation, .peer = peer, .tag = tag, .shapes = &shapes}, {});
  }
  void wait(const layout::Wait& wait) {
    wait_until(wait, [&] {
      for (const int rank : members(wait)) {
        if (rank_->board().seat(rank).groups[wait.group].posted < wait.sequence) return false;
      }
      return true;
    });
  }
  void call(Operation operation, std::initializer_list<std::int64_t> sizes = {4}, CheckedGroup* group = nullptr) {
    wait(post(operation, sizes, -1, 0, group));
  }
  /// Waits for something that never comes by itself.
  void wait_for_ever(const layout::Wait& wait) {
    wait_until(wait, [] { return false; });
  }

  [[nodiscard]] int rank() const { return rank_->rank(); }
  [[nodiscard]] const std::shared_ptr<CheckedRank>& checked() const { return rank_; }

 private:
  std::vector<int> members(const layout::Wait& wait) const {
    const auto& group = rank_->board().header().groups[wait.group];
    return {group.ranks.begin(), group.ranks.begin() + group.size};
  }
  void wait_until(const layout::Wait& wait, const std::function<bool()>& is_done) {
    const WaitScope scope(rank_, wait);
    while (!is_done()) {
      rank_->throw_if_judged();
      usleep(1000);
    }
  }

  std::shared_ptr<CheckedRank> rank_;
  Monitor monitor_;
  std::shared_ptr<CheckedGroup> world_;
};

/// Runs `program` on `num_ranks` processes. @return the verdict, or ""
std::string run(int num_ranks, const std::function<void(TestRank&)>& program, CheckOptions options = {}) {
  const auto board = Board::create("checked-world-test", num_ranks);
  std::vector<pid_t> children;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      try {
        TestRank self(board, rank, options);
        try {
          program(self);
        } catch (const VerdictReached&) {
        } catch (const std::exception& error) {
          self.checked()->fail("RuntimeError", error.what(), 0, {});
          sleep(1);
        }
      } catch (const std::exception&) {
        _exit(1);
      }
      _exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Board::remove_name(board->name());
  return board->verdict().value_or("");
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
#define EXPECT_HAS(text, part) EXPECT_TRUE(has(text, part)) << "looked for " << (part) << " in " << (text)

TEST(CheckedWorld, AHealthyProgramHasNoVerdict) {
  EXPECT_EQ(run(3,
                [](TestRank& rank) {
                  for (int step = 0; step < 200; ++step) {
                    rank.call(Operation::allreduce);
                    if (step % 50 == rank.rank()) usleep(120'000);
                    rank.call(Operation::broadcast, {2, 3});
                  }
                }),
            "");
}

TEST(CheckedWorld, TheOddRankOfAMismatchIsNamed) {
  const auto verdict = run(3, [](TestRank& rank) {
    rank.call(Operation::allreduce);
    rank.call(rank.rank() == 1 ? Operation::broadcast : Operation::allreduce);
  });
  EXPECT_HAS(verdict, "\"verdict\": \"mismatch\"");
  EXPECT_HAS(verdict, "\"first\": 1");
  EXPECT_HAS(verdict, "rank 1 calls broadcast #2 of group world (float32 [4]); ranks 0, 2 call allreduce #2");
}

TEST(CheckedWorld, ShapesWithEquallyManyElementsDiffer) {
  const auto verdict = run(2, [](TestRank& rank) {
    if (rank.rank() == 0) {
      rank.call(Operation::allreduce, {2, 3});
    } else {
      rank.call(Operation::allreduce, {3, 2});
    }
  });
  EXPECT_HAS(verdict, "\"verdict\": \"mismatch\"");
  EXPECT_HAS(verdict, "float32 [2, 3]");
  EXPECT_HAS(verdict, "float32 [3, 2]");
}

TEST(CheckedWorld, GroupsUsedInOppositeOrderAreACycle) {
  const auto verdict = run(2, [](TestRank& rank) {
    const auto a = rank.group("a", {0, 1});
    const auto b = rank.group("b", {0, 1});
    rank.call(Operation::allreduce, {4}, rank.rank() == 0 ? a.get() : b.get());
    rank.call(Operation::allreduce, {4}, rank.rank() == 0 ? b.get() : a.get());
  });
  EXPECT_HAS(verdict, "\"verdict\": \"deadlock\"");
  EXPECT_HAS(verdict, "rank 0 waits in allreduce #1 of group a (float32 [4]) for rank 1");
  EXPECT_HAS(verdict, "rank 1 waits in allreduce #1 of group b (float32 [4]) for rank 0");
}

TEST(CheckedWorld, PostedInOppositeOrderAndWaitedForAfterwardsIsLegal) {
  EXPECT_EQ(
      run(2,
          [](TestRank& rank) {
            const auto a = rank.group("a", {0, 1});
            const auto b = rank.group("b", {0, 1});
            for (int step = 0; step < 50; ++step) {
              const auto first = rank.post(Operation::allreduce, {4}, -1, 0, rank.rank() == 0 ? a.get() : b.get());
              const auto second = rank.post(Operation::allreduce, {4}, -1, 0, rank.rank() == 0 ? b.get() : a.get());
              rank.wait(first);
              rank.wait(second);
            }
          }),
      "");
}

TEST(CheckedWorld, ARankThatHasLeftIsNamed) {
  const auto verdict = run(3, [](TestRank& rank) {
    rank.call(Operation::allreduce);
    if (rank.rank() != 2) rank.call(Operation::allreduce);
  });
  EXPECT_HAS(verdict, "\"verdict\": \"deadlock\"");
  EXPECT_HAS(verdict, "\"first\": 2");
  EXPECT_HAS(verdict, "for rank 2, which has left after allreduce #1");
}

TEST(CheckedWorld, ARankThatFailsIsNamedWithItsReason) {
  const auto verdict = run(3, [](TestRank& rank) {
    rank.call(Operation::allreduce);
    if (rank.rank() == 1) throw std::runtime_error("index 41 is out of range");
    rank.call(Operation::allreduce);
  });
  EXPECT_HAS(verdict, "\"verdict\": \"rank_failed\"");
  EXPECT_HAS(verdict, "\"first\": 1");
  EXPECT_HAS(verdict, "index 41 is out of range");
}

TEST(CheckedWorld, ARankThatComputesIsNotAccused) {
  EXPECT_EQ(run(2,
                [](TestRank& rank) {
                  if (rank.rank() == 0) usleep(1'500'000);
                  rank.call(Operation::allreduce);
                }),
            "");
}

TEST(CheckedWorld, AStragglerIsNamedAfterTheLimitThatTheUserSet) {
  const auto verdict = run(2,
                           [](TestRank& rank) {
                             rank.call(Operation::allreduce);
                             if (rank.rank() == 0) usleep(1'500'000);
                             rank.call(Operation::broadcast);
                           },
                           {.stall_s = 0.3});
  EXPECT_HAS(verdict, "\"verdict\": \"straggler\"");
  EXPECT_HAS(verdict, "\"first\": 0");
}

TEST(CheckedWorld, SendAndReceiveOfAnotherLengthDoNotMatch) {
  const auto verdict = run(2, [](TestRank& rank) {
    const auto wait = rank.rank() == 0 ? rank.post(Operation::send, {4}, 1) : rank.post(Operation::recv, {2}, 0);
    rank.wait_for_ever(wait);
  });
  EXPECT_HAS(verdict, "\"verdict\": \"mismatch\"");
  EXPECT_HAS(verdict, "rank 0 calls send #1 to rank 1 with tag 0 of group world (float32 [4])");
}

TEST(CheckedWorld, AReceiveUnderAnotherTagIsADeadlock) {
  const auto verdict = run(2, [](TestRank& rank) {
    if (rank.rank() == 0) {
      rank.post(Operation::send, {4}, 1, 7);
      rank.call(Operation::barrier);
    } else {
      rank.wait_for_ever(rank.post(Operation::recv, {4}, 0, 8));
    }
  });
  EXPECT_HAS(verdict, "\"verdict\": \"deadlock\"");
  EXPECT_HAS(verdict, "rank 1 waits in recv #1 from rank 0 with tag 8");
}

TEST(CheckedWorld, AKeyThatNobodySetsIsADeadlock) {
  const auto verdict = run(2, [](TestRank& rank) {
    if (rank.rank() == 0) {
      rank.wait_for_ever(rank.checked()->store_wait("ready"));
    } else {
      rank.call(Operation::barrier);
    }
  });
  EXPECT_HAS(verdict, "\"verdict\": \"deadlock\"");
  EXPECT_HAS(verdict, "key 'ready' of the store");
}

TEST(CheckedWorld, AThreadThatStillComputesMayYetPostTheCall) {
  EXPECT_EQ(run(2,
                [](TestRank& rank) {
                  const auto side = rank.group("side", {0, 1});
                  if (rank.rank() == 0) {
                    std::thread computes([&] {
                      const auto until = now_ns() + 800'000'000;
                      while (now_ns() < until) {
                      }
                      rank.call(Operation::allreduce, {4}, side.get());
                    });
                    rank.call(Operation::barrier);
                    computes.join();
                  } else {
                    rank.call(Operation::allreduce, {4}, side.get());
                    rank.call(Operation::barrier);
                  }
                }),
            "");
}

TEST(CheckedWorld, SplitSizesThatDoNotFitAreToldPairByPair) {
  const auto verdict = run(2, [](TestRank& rank) {
    const auto world = rank.group("pair", {0, 1});
    Shapes shapes;
    const std::vector<std::int64_t> sends = {1, 3};
    const std::vector<std::int64_t> receives =
        rank.rank() == 0 ? std::vector<std::int64_t>{1, 1} : std::vector<std::int64_t>{2, 3};
    rank.wait_for_ever(
        world->post({.operation = Operation::alltoall, .shapes = &shapes, .sends = sends, .receives = receives}, {}));
  });
  EXPECT_HAS(verdict, "\"verdict\": \"mismatch\"");
  EXPECT_HAS(verdict, "rank 0 sends 3 elements to rank 1");
}

TEST(CheckOptions, LevelsAreReadFromTheirWords) {
  EXPECT_EQ(CheckOptions::with_level("off").level, Level::off);
  EXPECT_EQ(CheckOptions::with_level("sampled:10").sample_every, 10U);
  EXPECT_THROW(CheckOptions::with_level("sampled:0"), std::invalid_argument);
  EXPECT_THROW(CheckOptions::with_level("half"), std::invalid_argument);
}

}  // namespace
}  // namespace lockstep::sim
