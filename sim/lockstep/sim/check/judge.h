#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/sim/check/board.h"
#include "lockstep/sim/check/checked_rank.h"
#include "lockstep/sim/check/verdict_document.h"
#include "lockstep/sim/check/wait_graph.h"

namespace lockstep::sim {

/// How a rank stands at this moment.
RankStanding standing_of(const Board& board, int rank);

/// The verdict about a rank that has failed by itself.
VerdictDocument failure_of(const Board& board, int rank, const ResolvePlace& resolve);

/// Looks at all ranks of a board, again and again, and says when some of them can never go on.
///
/// A single look may catch ranks at different moments. What makes it a proof is that two looks some time apart found
/// the same waits, of the same calls, with nothing posted in between by any stuck rank: then all of them held at once.
class Judge {
 public:
  Judge(std::shared_ptr<Board> board, CheckOptions options, ResolvePlace resolve)
      : board_(std::move(board)), options_(options), resolve_(std::move(resolve)) {}

  /// One look. @return the verdict as a JSON document, once there is one
  std::optional<std::string> look();

 private:
  struct View;
  [[nodiscard]] View view() const;
  [[nodiscard]] std::string awaited(const View& view, const std::vector<int>& targets) const;
  [[nodiscard]] std::string hint_for(const View& view, const std::vector<int>& stuck) const;
  [[nodiscard]] VerdictDocument deadlock(const View& view, const std::vector<int>& stuck) const;
  [[nodiscard]] std::optional<VerdictDocument> straggler(const View& view) const;

  std::shared_ptr<Board> board_;
  CheckOptions options_;
  ResolvePlace resolve_;
  std::uint64_t suspicion_ = 0;  // what the last look found, as a hash; 0: nothing
  int num_equal_looks_ = 0;
  std::vector<std::uint32_t> still_before_;  // per rank: its monitor's count at the last look
};

}  // namespace lockstep::sim
