#include <thread>

#include "lockstep/sim/check/checked_world_test_support.h"

namespace lockstep::sim {
namespace {

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

// 40 vectors of which rank 1's `odd` one has another length.
std::string run_with_many_tensors(int odd) {
  return run(2, [odd](TestRank& rank) {
    Shapes shapes;
    for (int i = 0; i < 40; ++i) shapes.add(6, {rank.rank() == 1 && i == odd ? 9 : 2});
    rank.wait_for_ever(rank.world().post({.operation = Operation::allreduce, .shapes = &shapes}, {}));
  });
}

TEST(CheckedWorld, OfManyTensorsTheFirstThatDiffersIsNamed) {
  const auto verdict = run_with_many_tensors(4);
  EXPECT_HAS(verdict,
             "float32 [2], float32 [2], float32 [2], float32 [2], float32 [9], float32 [2], float32 [2], float32 [2] "
             "and 32 more");
  EXPECT_HAS(verdict, "Tensor 5 of 40: float32 [9] against float32 [2].");
}

TEST(CheckedWorld, OfTensorsThatAreNotKeptItIsSaidHowManyAgree) {
  EXPECT_HAS(run_with_many_tensors(30), "The first 8 of 40 agree; the difference is in a later one.");
}

TEST(CheckedWorld, FormsOfOneOperationAreTold) {
  const auto verdict = run(2, [](TestRank& rank) {
    const auto form = rank.rank() == 0 ? Form::plain : Form::coalesced;
    rank.wait_for_ever(rank.world().post({.operation = Operation::allgather, .form = form}, {}));
  });
  EXPECT_HAS(verdict, "here are the coalesced one and the plain one.");
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
  EXPECT_HAS(verdict, "\"hint\": \"Groups a and b are waited for crosswise.");
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
  EXPECT_HAS(verdict, "ranks 0, 1 wait in allreduce #2 of group world (float32 [4]) for rank 2, which has left after");
  EXPECT_HAS(verdict, "\"hint\": \"Who has left made fewer calls than the others");
}

TEST(CheckedWorld, ThePlacesOfACallOfItsWaitAndOfAFailureAreTold) {
  const auto verdict = run(2, [](TestRank& rank) {
    if (rank.rank() == 1) {
      usleep(300'000);
      rank.checked()->fail("ValueError", "no batch", 3, site_at("data.py:7:next_batch"));
      return;
    }
    const auto wait = rank.post_at("train.py:41:step", Operation::allreduce);
    const WaitScope scope(rank.checked(), wait, site_at("train.py:44:synchronise"));
    while (true) rank.checked()->look_for_verdict();
  });
  EXPECT_HAS(verdict, "\"place\": {\"file\": \"train.py\", \"line\": 41, \"function\": \"step\"}");
  EXPECT_HAS(verdict, "\"waits_at\": {\"file\": \"train.py\", \"line\": 44, \"function\": \"synchronise\"}");
  EXPECT_HAS(verdict, "\"failed_at\": {\"file\": \"data.py\", \"line\": 7, \"function\": \"next_batch\"}");
  EXPECT_HAS(verdict, "rank 1 failed (ValueError: no batch) at data.py:7 (next_batch) before its first call");
}

TEST(CheckedWorld, ARankThatIsKilledIsNamedWithTheSignalThatItsLauncherSaw) {
  const auto verdict = run(3, [](TestRank& rank) {
    rank.call(Operation::allreduce);
    if (rank.rank() == 1) kill(getpid(), SIGKILL);
    rank.call(Operation::barrier, {});
  });
  EXPECT_HAS(verdict, "\"verdict\": \"rank_failed\"");
  EXPECT_HAS(verdict, "for rank 1, whose process was ended by signal 9 (Killed) after allreduce #1 of group world");
  EXPECT_HAS(verdict, "\"signal\": 9");
}

TEST(CheckedWorld, AMonitoredBarrierThatFailsNamesTheOneWhoDidNotCome) {
  const auto verdict = run(3, [](TestRank& rank) {
    if (rank.rank() == 2) return usleep(800'000), void();  // late, and nobody's fault of another kind
    rank.world().post({.operation = Operation::barrier, .form = Form::tensor}, {});
    usleep(200'000);
    if (rank.rank() == 0) throw std::runtime_error("Rank 2 failed to pass monitoredBarrier in 200 ms");
    usleep(600'000);
  });
  EXPECT_HAS(verdict, "\"verdict\": \"rank_failed\"");
  EXPECT_HAS(verdict, "\"first\": 2");
  EXPECT_HAS(verdict, "after monitored_barrier #1 of group world, to which rank 2 has not come");
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

TEST(CheckedWorld, ARankThatEndsBeforeItJoinsIsWaitedForInVain) {
  const auto job = "checked-world-test-" + std::to_string(getpid());
  const auto board = Board::create(job, 2);
  BoardView view(job);
  view.refresh();
  const pid_t pid = fork();
  if (pid == 0) {
    try {
      const TestRank self(board, 0, {});
    } catch (const VerdictReached&) {
    }
    _exit(0);
  }
  view.set_ended(1);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  view.remove_names();
  EXPECT_HAS(view.verdict().value_or(""), "\"verdict\": \"deadlock\"");
  EXPECT_HAS(view.verdict().value_or(""),
             "rank 0 waits in the making of group world for rank 1, which has left before its first call");
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
                             if (rank.rank() == 0) rank.checked()->board().wait_for_verdict(/*timeout_ms=*/20'000);
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
  EXPECT_HAS(verdict, "\"hint\": \"The send that this receive waits for was not made.");
}

TEST(CheckedWorld, TwoThatSendFirstAreADeadlock) {
  const auto verdict =
      run(2, [](TestRank& rank) { rank.wait_for_ever(rank.post(Operation::send, {4}, 1 - rank.rank())); });
  EXPECT_HAS(verdict, "\"verdict\": \"deadlock\"");
  EXPECT_HAS(verdict, "if both send first, nobody receives.");
}

TEST(CheckedWorld, AGroupThatOneRankDoesNotMakeIsADeadlock) {
  const auto verdict = run(2, [](TestRank& rank) {
    if (rank.rank() == 0) rank.group("pair", {0, 1});
    rank.call(Operation::barrier, {});
  });
  EXPECT_HAS(verdict, "rank 0 waits in the making of group pair for rank 1");
  EXPECT_HAS(verdict, "\"hint\": \"All ranks must call new_group for the same groups");
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
  EXPECT_HAS(verdict, "\"hint\": \"No rank that could set the key gets so far.");
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
