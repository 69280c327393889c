// What the model says of small programs, worked out by hand from the checker's rules.
#include "lockstep/sim/gallery/generated/outcome.h"

#include <gtest/gtest.h>

#include <ostream>

#include "lockstep/sim/gallery/generated/faults.h"

namespace lockstep::sim::generated {

// For the messages of GoogleTest.
void PrintTo(const Outcome& outcome, std::ostream* stream) { *stream << to_text(outcome); }

namespace {

using Outcomes = std::set<Outcome>;
using Ranks = std::vector<int>;

/// Deals calls to ranks, each at the next line.
class Sequence {
 public:
  explicit Sequence(int world_size, std::vector<Group> groups = {}) {
    Group world{.name = "world"};
    for (int rank = 0; rank < world_size; ++rank) world.ranks.push_back(rank);
    program_ = {.world_size = world_size, .groups = {world}};
    program_.groups.insert(program_.groups.end(), groups.begin(), groups.end());
    program_.ranks.resize(static_cast<std::size_t>(world_size));
  }

  Sequence& deal(const Ranks& ranks, Call call) {
    call.line = line_++;
    if (has_tensor(call.action) && call.shape.empty()) call.shape = {6, 2};
    for (const int rank : ranks) program_.ranks[static_cast<std::size_t>(rank)].push_back(call);
    return *this;
  }
  Sequence& deal(Call call) {
    return deal(program_.groups[static_cast<std::size_t>(call.group)].ranks, std::move(call));
  }

  [[nodiscard]] const Program& program() const { return program_; }

 private:
  Program program_;
  int line_ = 0;
};

// Rank 0 and 1 make lines 0, 1, (2 or 3), 4, 5, 6; rank 2 makes lines 0, 1, 5, 6.
Program healthy() {
  return Sequence(3, {{.name = "pair", .ranks = {0, 1}}})
      .deal({.action = Action::all_reduce})
      .deal({.action = Action::broadcast, .peer = 0})
      .deal({0}, {.action = Action::send, .peer = 1})
      .deal({1}, {.action = Action::receive, .peer = 0})
      .deal({.action = Action::all_reduce, .group = 1})
      .deal({.action = Action::all_gather})
      .deal({.action = Action::barrier})
      .program();
}

Outcomes outcomes_with(const Fault& fault) { return expected_outcomes(with_fault(healthy(), fault)); }

Outcomes mismatch_at(int rank, int line) { return {{.verdict = Verdict::mismatch, .rank = rank, .line = line}}; }
Outcomes deadlock_at(int rank, int line) { return {{.verdict = Verdict::deadlock, .rank = rank, .line = line}}; }
const Outcomes kDeadlockOfNobody = {{.verdict = Verdict::deadlock}};
const Outcomes kMismatchOfNobody = {{.verdict = Verdict::mismatch}};
const Outcomes kCompletes = {{.verdict = Verdict::completes}};

TEST(GeneratedOutcome, AHealthyProgramCompletes) { EXPECT_EQ(expected_outcomes(healthy()), kCompletes); }

TEST(GeneratedOutcome, ACollectiveThatOneRankLeavesOutMeetsTheNextOne) {
  EXPECT_EQ(outcomes_with({.kind = FaultKind::drop, .rank = 2, .position = 0}), mismatch_at(2, 1));
}

TEST(GeneratedOutcome, WhoLeavesOutTheLastCallIsGone) {
  EXPECT_EQ(outcomes_with({.kind = FaultKind::drop, .rank = 2, .position = 3}), deadlock_at(2, 5));
}

TEST(GeneratedOutcome, TwoThatWaitForEachOtherDoNotTellWhoBegan) {
  EXPECT_EQ(outcomes_with({.kind = FaultKind::drop, .rank = 1, .position = 2}), kDeadlockOfNobody);
  EXPECT_EQ(outcomes_with({.kind = FaultKind::drop, .rank = 0, .position = 2}), kDeadlockOfNobody);
  EXPECT_EQ(outcomes_with({.kind = FaultKind::duplicate, .rank = 0, .position = 2}), kDeadlockOfNobody);
  EXPECT_EQ(outcomes_with({.kind = FaultKind::tag, .rank = 1, .position = 2, .value = 3}), kDeadlockOfNobody);
}

TEST(GeneratedOutcome, ACollectiveMadeTwiceMeetsTheOthersNext) {
  EXPECT_EQ(outcomes_with({.kind = FaultKind::duplicate, .rank = 1, .position = 0}), mismatch_at(1, 0));
}

TEST(GeneratedOutcome, SwappedCollectivesDoNotMatch) {
  EXPECT_EQ(outcomes_with({.kind = FaultKind::swap, .rank = 2, .position = 0}), mismatch_at(2, 1));
}

TEST(GeneratedOutcome, AnotherCollectiveOrArgumentDoesNotMatch) {
  const auto reduce = static_cast<int>(Action::reduce);
  EXPECT_EQ(outcomes_with({.kind = FaultKind::action, .rank = 1, .position = 0, .value = reduce}), mismatch_at(1, 0));
  for (const auto kind : {FaultKind::reduction, FaultKind::dtype, FaultKind::shape}) {
    EXPECT_EQ(outcomes_with({.kind = kind, .rank = 1, .position = 0, .value = 1}), mismatch_at(1, 0)) << to_word(kind);
  }
  EXPECT_EQ(outcomes_with({.kind = FaultKind::root, .rank = 1, .position = 1, .value = 2}), mismatch_at(1, 1));
}

TEST(GeneratedOutcome, TheEndsOfAMessageDisagreeAndNoneIsTheOddOne) {
  EXPECT_EQ(outcomes_with({.kind = FaultKind::shape, .rank = 1, .position = 2}), kMismatchOfNobody);
  EXPECT_EQ(outcomes_with({.kind = FaultKind::dtype, .rank = 0, .position = 2, .value = 2}), kMismatchOfNobody);
}

// Rank 1 waits for rank 0 in the pair, ranks 0 and 2 wait for rank 1 in the world. Before rank 2 has come, the other
// two already are a cycle, in which nothing tells.
TEST(GeneratedOutcome, InAnotherGroupAllOthersWaitForTheRank) {
  auto expected = deadlock_at(1, 0);
  expected.insert(kDeadlockOfNobody.begin(), kDeadlockOfNobody.end());
  EXPECT_EQ(outcomes_with({.kind = FaultKind::group, .rank = 1, .position = 0, .value = 1}), expected);
}

TEST(GeneratedOutcome, WhoLeavesOrFailsIsNamedWithItsLastCall) {
  EXPECT_EQ(outcomes_with({.kind = FaultKind::leave, .rank = 1, .position = 3}), deadlock_at(1, 3));
  const Outcomes failed = {{.verdict = Verdict::rank_failed, .rank = 2, .line = 1}};
  EXPECT_EQ(outcomes_with({.kind = FaultKind::fail, .rank = 2, .position = 2}), failed);
  const Outcomes failed_at_once = {{.verdict = Verdict::rank_failed, .rank = 2}};
  EXPECT_EQ(outcomes_with({.kind = FaultKind::fail, .rank = 2, .position = 0}), failed_at_once);
}

TEST(GeneratedOutcome, ABlockTooOftenOrNotAtAllMeetsTheOthers) {
  EXPECT_EQ(outcomes_with({.kind = FaultKind::loop, .rank = 2, .position = 0, .value = 2}), mismatch_at(2, 0));
  EXPECT_EQ(outcomes_with({.kind = FaultKind::loop, .rank = 2, .position = 0, .value = -2}), mismatch_at(2, 5));
}

TEST(GeneratedOutcome, BetweenTwoRanksNoneIsTheOddOne) {
  Sequence sequence(2);
  sequence.deal({.action = Action::all_reduce}).deal({.action = Action::barrier});
  EXPECT_EQ(expected_outcomes(with_fault(sequence.program(), {.kind = FaultKind::drop, .rank = 0})), kMismatchOfNobody);
}

TEST(GeneratedOutcome, OfTheRowsOfAnAllToAllNoRankIsTheOddOne) {
  Sequence sequence(3);
  sequence.deal({.action = Action::all_to_all}).deal({.action = Action::barrier});
  EXPECT_EQ(expected_outcomes(with_fault(sequence.program(), {.kind = FaultKind::shape, .rank = 1})),
            kMismatchOfNobody);
  EXPECT_EQ(expected_outcomes(with_fault(sequence.program(), {.kind = FaultKind::shape, .rank = 1, .value = 1})),
            mismatch_at(1, 0));
}

TEST(GeneratedOutcome, LabelsTellEqualBucketsApart) {
  Sequence sequence(3);
  sequence.deal({.action = Action::all_reduce, .asynchronous = true, .label = "a"})
      .deal({.action = Action::all_reduce, .asynchronous = true, .label = "b"})
      .deal({.action = Action::wait, .awaited = 0})
      .deal({.action = Action::wait, .awaited = 1})
      .deal({.action = Action::barrier});
  EXPECT_EQ(expected_outcomes(sequence.program()), kCompletes);
  EXPECT_EQ(expected_outcomes(with_fault(sequence.program(), {.kind = FaultKind::swap, .rank = 2})), mismatch_at(2, 1));
}

// One class, as far as each goes with a call that has no name; and yet two of them do not go together.
TEST(GeneratedOutcome, ALabelThatOneRankLacksHidesWhoIsTheOddOne) {
  Sequence sequence(3);
  sequence.deal({.action = Action::all_reduce}).deal({.action = Action::barrier});
  auto program = sequence.program();
  program.ranks[1][0].label = "a";
  program.ranks[2][0].label = "b";
  EXPECT_EQ(expected_outcomes(program), kMismatchOfNobody);
}

// Nobody can be told to be stuck before all are: any of the others might set the key.
TEST(GeneratedOutcome, WhoWaitsForAKeyThatNobodySetsKeepsTheOthers) {
  Sequence sequence(3);
  sequence.deal({0}, {.action = Action::store_set, .key = "k"})
      .deal({1}, {.action = Action::store_wait, .key = "k"})
      .deal({.action = Action::barrier});
  EXPECT_EQ(expected_outcomes(sequence.program()), kCompletes);
  EXPECT_EQ(expected_outcomes(with_fault(sequence.program(), {.kind = FaultKind::drop, .rank = 0})), deadlock_at(1, 1));
}

TEST(GeneratedOutcome, GroupsInOppositeOrderAreACycleUnlessTheyAreAsynchronous) {
  for (const bool asynchronous : {false, true}) {
    Sequence sequence(2, {{.name = "other", .ranks = {0, 1}}});
    sequence.deal({.action = Action::all_reduce, .asynchronous = asynchronous})
        .deal({.action = Action::all_reduce, .group = 1, .asynchronous = asynchronous})
        .deal({.action = Action::wait, .awaited = 0})
        .deal({.action = Action::wait, .awaited = 1})
        .deal({.action = Action::barrier});
    EXPECT_EQ(expected_outcomes(with_fault(sequence.program(), {.kind = FaultKind::swap, .rank = 1})),
              asynchronous ? kCompletes : kDeadlockOfNobody);
  }
}

// Two clashes, each of which may be the first: in the world and in the pair nobody waits before both are made.
TEST(GeneratedOutcome, IndependentMismatchesMayBothBeTold) {
  Sequence sequence(3, {{.name = "pair", .ranks = {0, 1}}});
  sequence.deal({.action = Action::all_reduce, .group = 1, .asynchronous = true})
      .deal({.action = Action::all_reduce, .dtype = Dtype::int64, .asynchronous = true})
      .deal({.action = Action::barrier});
  auto program = sequence.program();
  std::swap(program.ranks[1][0].group, program.ranks[1][1].group);
  Outcomes expected = mismatch_at(1, 0);
  expected.insert(kMismatchOfNobody.begin(), kMismatchOfNobody.end());
  EXPECT_EQ(expected_outcomes(program), expected);
}

TEST(GeneratedOutcome, TextsNameWhatIsKnown) {
  EXPECT_EQ(to_text(Outcome{.verdict = Verdict::mismatch, .rank = 2, .line = 17}),
            "mismatch, began at rank 2, line 17");
  EXPECT_EQ(to_text(Outcome{.verdict = Verdict::deadlock}), "deadlock");
}

}  // namespace
}  // namespace lockstep::sim::generated
