#include <fcntl.h>
#include <sys/mman.h>

#include <nlohmann/json.hpp>

#include "lockstep/sim/check/checked_world_test_support.h"
#include "lockstep/sim/check/process.h"
#include "lockstep/sim/check/verdict_document.h"

namespace lockstep::sim {
namespace {

std::string job() { return "board-test-" + std::to_string(getpid()); }

std::shared_ptr<Board> unnamed_board(int world_size) {
  auto board = Board::create(job(), world_size);
  Board::remove_name(board->name());
  return board;
}

/// Claims something in a process that dies before it has written it.
void claim_and_die(layout::Claim& claim, int after_ms = 0) {
  const pid_t child = fork();
  if (child == 0) {
    claim.writer = id_of(getpid());
    usleep(static_cast<useconds_t>(after_ms) * 1000);
    _exit(0);
  }
  while (claim.writer == 0) usleep(1000);
  if (after_ms == 0) waitpid(child, nullptr, 0);
}

TEST(Board, AVerdictWhoseWriterDiedIsWrittenByTheNext) {
  const auto board = unnamed_board(2);
  claim_and_die(board->header().verdict.claim);
  EXPECT_EQ(board->verdict(), std::nullopt);
  EXPECT_TRUE(board->post_verdict("{}"));
  EXPECT_EQ(board->verdict(), "{}");
  EXPECT_FALSE(board->post_verdict("{\"v\": 1}"));
}

TEST(Board, AVerdictThatIsBeingWrittenIsLeftToItsWriter) {
  const auto board = unnamed_board(2);
  board->header().verdict.claim.writer = id_of(getpid());
  EXPECT_FALSE(board->post_verdict("{}"));
  EXPECT_EQ(board->verdict(), std::nullopt);
}

TEST(Board, AVerdictThatIsTooLongIsRefused) {
  EXPECT_THROW(unnamed_board(1)->post_verdict(std::string(layout::kVerdictBytes + 1, ' ')), std::length_error);
}

TEST(Board, AGroupWhoseWriterDiedIsWrittenByTheNext) {
  const auto board = unnamed_board(3);
  const auto index = board->group("g", {2, 0}, 0);
  ASSERT_TRUE(index);
  auto& group = board->header().groups[static_cast<std::size_t>(*index)];
  group.claim.is_there = 0;
  group.claim.writer = 0;
  group.name = {"half wri"};
  group.key = 0;
  const auto begin = now_ns();
  claim_and_die(group.claim, 200);
  EXPECT_EQ(board->group("g", {2, 0}, 0), index);
  EXPECT_GE(now_ns() - begin, 150'000'000);  // it was left to its writer as long as that lived
  EXPECT_STREQ(group.name.data(), "g");
  EXPECT_EQ(group.ranks[0], 2);
  EXPECT_EQ(board->group("g", {2, 0}, 1) == index, false);
  wait(nullptr);
}

TEST(BoardView, DoesNotWaitForABoardWhoseMakerDied) {
  const auto name = "/lockstep-" + job() + "-7";
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  BoardView view(job());
  const auto begin = now_ns();
  view.refresh();
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(layout::bytes_for(1))), 0);
  view.refresh();
  EXPECT_LT(now_ns() - begin, 300'000'000);
  close(file);
  view.remove_names();
}

TEST(BoardView, ImposesTheCauseOfADocumentThatIsTooLong) {
  const auto board = Board::create(job(), 1);
  BoardView view(job());
  view.refresh();
  const nlohmann::json document = {{"v", 1},
                                   {"verdict", "interrupted"},
                                   {"cause", "interrupted by \"signal\" 2"},
                                   {"ranks", std::string(layout::kVerdictBytes, 'x')}};
  view.impose(document.dump());
  const auto imposed = nlohmann::json::parse(board->verdict().value());
  EXPECT_EQ(imposed["verdict"], "interrupted");
  EXPECT_EQ(imposed["cause"], "interrupted by \"signal\" 2");
  EXPECT_EQ(imposed["notes"].size(), 1U);
  EXPECT_EQ(cause_of(document.dump()), "interrupted by \"signal\" 2");
  view.remove_names();
}

VerdictDocument everyone_waits_for_everyone(const Board& board) {
  VerdictDocument document{.verdict = "deadlock", .cause = std::string(100'000, '\033'), .first = 77, .hint = "Look."};
  for (int rank = 0; rank < board.world_size(); ++rank) {
    RankStanding standing{.rank = rank, .state = "blocked"};
    standing.failure = layout::Failure{};
    standing.failure->message.fill(rank % 2 == 0 ? 'm' : '\033');
    for (int other = 0; other < board.world_size(); ++other) {
      standing.waits_for.push_back(other);
      document.edges.emplace_back(rank, other);
    }
    document.ranks.push_back(std::move(standing));
  }
  return document;
}

TEST(VerdictDocument, IsCutToWhatTheBoardHolds) {
  const auto board = unnamed_board(layout::kMaxRanks);
  const auto text = to_json(everyone_waits_for_everyone(*board), *board, {});
  EXPECT_LE(text.size(), layout::kVerdictBytes);
  EXPECT_GT(text.size(), layout::kVerdictBytes - 10'000);  // and holds as much as there is room for
  const auto document = nlohmann::json::parse(text);
  EXPECT_TRUE(document["edges"].empty());
  ASSERT_EQ(document["ranks"].size(), 256U);
  EXPECT_EQ(document["ranks"][77]["waits_for"].size(), 256U);
  EXPECT_EQ(document["ranks"][77]["rank"], 77);
  int num_brief = 0;
  for (const auto& rank : document["ranks"])
    num_brief += rank == nlohmann::json{{"rank", rank["rank"]}, {"state", "blocked"}};
  EXPECT_GT(num_brief, 0);
  EXPECT_EQ(document["notes"].back(),
            "this document would be too long: it leaves out the edges, and all but the state of " +
                std::to_string(num_brief) + " of 256 ranks");
}

TEST(VerdictDocument, LosesOnlyItsEdgesWhereThatIsEnough) {
  const auto board = unnamed_board(layout::kMaxRanks);
  auto edges = everyone_waits_for_everyone(*board);
  for (auto& standing : edges.ranks) standing.failure.reset();
  for (auto& standing : edges.ranks) standing.waits_for.resize(30);
  const auto document = nlohmann::json::parse(to_json(edges, *board, {}));
  EXPECT_TRUE(document["edges"].empty());
  EXPECT_EQ(document["notes"].back(), "this document would be too long: it leaves out the edges");
}

}  // namespace
}  // namespace lockstep::sim
