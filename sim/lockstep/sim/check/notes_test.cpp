#include <thread>

#include "lockstep/sim/check/checked_world_test_support.h"

namespace lockstep::sim {
namespace {

using Notes = std::vector<std::string>;

TEST(Notes, CallsThatAgreeAndComeFromDifferentPlacesAreToldOnce) {
  const auto outcome = run_watched(3, [](TestRank& rank) {
    for (int step = 0; step < 20; ++step) {
      rank.call_at("a.cpp:9:train", Operation::barrier);
      rank.call_at(rank.rank() == 0 ? "a.cpp:12:train" : "a.cpp:15:train", Operation::allreduce);
    }
  });
  EXPECT_EQ(outcome.verdict, "");
  EXPECT_EQ(outcome.notes, (Notes{"call sites differ: allreduce #2 of group world is called at a.cpp:12 (train) by "
                                  "rank 0 and at a.cpp:15 (train) by ranks 1, 2"}));
}

TEST(Notes, ARootMayCallFromAPlaceOfItsOwn) {
  const auto outcome = run_watched(3, [](TestRank& rank) {
    for (const auto operation : {Operation::broadcast, Operation::scatter, Operation::gather, Operation::reduce}) {
      rank.call_at(rank.rank() == 0 ? "a.cpp:12:root" : "a.cpp:15:others", operation, 0);
    }
  });
  EXPECT_EQ(outcome.verdict, "");
  EXPECT_EQ(outcome.notes, Notes{});
}

TEST(Notes, TheOthersOfARootMayNot) {
  const auto outcome = run_watched(
      3, [](TestRank& rank) { rank.call_at("a.cpp:1" + std::to_string(rank.rank()) + ":f", Operation::broadcast, 0); });
  EXPECT_EQ(outcome.notes, (Notes{"call sites differ: broadcast #1 of group world is called at a.cpp:11 (f) by rank 1 "
                                  "and at a.cpp:12 (f) by rank 2"}));
}

TEST(Notes, TheEndsOfAMessageStandWhereTheyLike) {
  const auto outcome = run_watched(2, [](TestRank& rank) {
    const bool sends = rank.rank() == 0;
    rank.post_at(sends ? "a.cpp:12:f" : "a.cpp:15:f", sends ? Operation::send : Operation::recv, 1 - rank.rank());
  });
  EXPECT_EQ(outcome.verdict, "");
  EXPECT_EQ(outcome.notes, Notes{});
}

// "Main process first": the barrier stands after its part, and before that of the others.
TEST(Notes, BarriersStandWhereTheyLike) {
  const auto outcome = run_watched(
      2, [](TestRank& rank) { rank.call_at(rank.rank() == 0 ? "a.cpp:12:f" : "a.cpp:15:f", Operation::barrier); });
  EXPECT_EQ(outcome.verdict, "");
  EXPECT_EQ(outcome.notes, Notes{});
}

// A compiler may make two calls of one line.
TEST(Notes, TwoPlacesOnOneLineAreOne) {
  const auto outcome = run_watched(2, [](TestRank& rank) {
    const auto hash = static_cast<std::uint64_t>(100 + rank.rank());
    rank.wait(rank.world().post({.operation = Operation::allreduce}, {.site = {.text = "a.cpp:12:f", .hash = hash}}));
  });
  EXPECT_EQ(outcome.notes, Notes{});
}

TEST(Notes, StandInTheDocumentOfAVerdict) {
  const auto verdict = run(2, [](TestRank& rank) {
    rank.call_at(rank.rank() == 0 ? "a.cpp:12:f" : "a.cpp:15:f", Operation::allreduce);
    if (rank.rank() == 0) rank.call(Operation::barrier);
  });
  EXPECT_HAS(verdict, "\"verdict\": \"deadlock\"");
  EXPECT_HAS(verdict, "\"notes\": [\"call sites differ: allreduce #1 of group world is called at a.cpp:12 (f) by");
}

TEST(StrictPlaces, MakeAMismatchOfThem) {
  const auto verdict =
      run(3, [](TestRank& rank) { rank.call_at(rank.rank() == 1 ? "a.cpp:12:f" : "a.cpp:15:f", Operation::allreduce); },
          {.strict_places = true});
  EXPECT_HAS(verdict,
             "\"verdict\": \"mismatch\", \"cause\": \"call sites differ: allreduce #1 of group world is called "
             "at a.cpp:12 (f) by rank 1 and at a.cpp:15 (f) by ranks 0, 2\"");
  EXPECT_HAS(verdict, "\"first\": 1");
}

TEST(StrictPlaces, ExceptARoot) {
  const CheckOptions strict{.strict_places = true};
  EXPECT_EQ(run(
                3,
                [](TestRank& rank) {
                  rank.call_at(rank.rank() == 0 ? "a.cpp:12:root" : "a.cpp:15:others", Operation::broadcast, 0);
                },
                strict),
            "");
  const auto verdict = run(
      3, [](TestRank& rank) { rank.call_at("a.cpp:1" + std::to_string(rank.rank()) + ":f", Operation::broadcast, 0); },
      strict);
  EXPECT_HAS(verdict, "is called at a.cpp:12 (f) by rank 2 and at a.cpp:11 (f) by rank 1");
  EXPECT_FALSE(has(verdict, "\"first\"")) << verdict;
}

/// Ranks that are all in this process, and do not wait for each other.
class Together {
 public:
  explicit Together(int size) : board_(Board::create("notes-test-" + std::to_string(getpid()), size)) {
    Board::remove_name(board_->name());
    for (int rank = 0; rank < size; ++rank) {
      everyone_.push_back(rank);
      ranks_.push_back(CheckedRank::join(board_, rank, {}, "", {}));
    }
    for (auto& rank : ranks_) worlds_.push_back(rank->join_group("world", everyone_));
  }
  void post(std::size_t rank, const Call& call, const Context& context = {}) { worlds_[rank]->post(call, context); }
  CheckedRank& rank(std::size_t rank) { return *ranks_[rank]; }
  [[nodiscard]] const std::vector<int>& everyone() const { return everyone_; }
  [[nodiscard]] Notes notes() const { return notes_of(*board_, {}); }

 private:
  std::shared_ptr<Board> board_;
  std::vector<int> everyone_;
  std::vector<std::shared_ptr<CheckedRank>> ranks_;
  std::vector<std::shared_ptr<CheckedGroup>> worlds_;
};

TEST(Notes, CallsTooFarApartAreCounted) {
  Together ranks(2);
  for (int i = 0; i < layout::kRing + 7; ++i) ranks.post(0, {.operation = Operation::allreduce});
  for (int i = 0; i < layout::kRing + 7; ++i) ranks.post(1, {.operation = Operation::allreduce});
  EXPECT_EQ(ranks.notes(), (Notes{"7 calls were not compared: another rank was more than 1024 calls of the group, or "
                                  "16 messages, ahead"}));
}

TEST(Notes, TablesThatAreFullAreNamed) {
  Together ranks(layout::kMaxSplits + 1);
  std::vector<std::shared_ptr<CheckedGroup>> groups;
  for (int i = 0; i < layout::kMaxGroups; ++i) groups.push_back(ranks.rank(3).join_group("g" + std::to_string(i), {3}));
  for (int tag = 0; tag <= layout::kMaxChannels; ++tag)
    ranks.post(1, {.operation = Operation::send, .peer = 0, .tag = tag});
  ranks.post(2, {.operation = Operation::send, .peer = 0}, {.label = std::string(layout::kArenaBytes, 'x')});
  const std::vector<std::int64_t> splits(ranks.everyone().size(), 1);
  ranks.post(4, {.operation = Operation::alltoall, .sends = splits, .receives = splits});
  std::vector<std::thread> threads;
  std::atomic<int> num_there = 0;
  for (int i = 0; i <= layout::kMaxThreads; ++i) {
    threads.emplace_back([&] {
      ranks.rank(5).thread_seat();
      ++num_there;
      while (num_there <= layout::kMaxThreads) usleep(1000);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(
      ranks.notes(),
      (Notes{"there is room for 128 groups: calls of those that came later were not checked (rank 3)",
             "there is room for 256 pairings of partner, tag and direction: sends and receives of the others were "
             "not checked (rank 1)",
             "there is room for 8 threads that communicate: for what the others waited was not seen (rank 5)",
             "there is room for 64 KiB of names, keys and places: later ones are missing (rank 2)",
             "the split sizes of an all-to-all were compared for the first 64 members of the group (rank 4)"}));
}

TEST(Notes, AreNotMoreThanCanBeRead) {
  Together ranks(2);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const auto place = "a.cpp:" + std::to_string(i) + (rank == 0 ? ":f" : ":g");
      ranks.post(rank, {.operation = Operation::allreduce}, {.site = site_at(place)});
    }
  }
  const auto notes = ranks.notes();
  ASSERT_EQ(notes.size(), 17U);
  EXPECT_EQ(notes.front(), "there is room for 16 pairs of call sites that differ: later ones are not told (rank 1)");
  EXPECT_EQ(notes.back(), "and 1 more");
}

}  // namespace
}  // namespace lockstep::sim
