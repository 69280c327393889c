#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/sim/check/checked_rank.h"

namespace lockstep::sim {

class Board;

/// A process of the job, as it wrote itself onto the board.
struct SeenRank {
  int rank = 0;
  pid_t pid = 0;
  bool is_checked = false;  ///< it has made at least one checked group
};

/// What is worth knowing of a board besides a verdict, a sentence each: calls that agree and come from different
/// places, calls that were not compared, tables that were too small. The first 16, and how many more.
std::vector<std::string> notes_of(const Board& board, const ResolvePlace& resolve);

/// What holds where some ranks of a world run on other hosts.
inline constexpr std::string_view kRanksElsewhere =
    "some ranks run on other hosts: calls are compared, and deadlocks found, among the ranks of one host alone";

/// What a launcher sees of its job's boards: every world that the job's ranks made has one.
///
/// Looks only: nothing that a reader does can hold a rank up.
class BoardView {
 public:
  /// @param job  the ranks' LOCKSTEP_JOB
  /// @param resolve  turns return addresses into lines, for standing_of and notes; may be empty
  explicit BoardView(std::string job, ResolvePlace resolve = {});
  ~BoardView();
  BoardView(const BoardView&) = delete;
  BoardView& operator=(const BoardView&) = delete;

  /// Looks for boards that were made since; cheap, call it at every turn.
  void refresh();
  /// The verdict of the first board that has one, as a JSON document (docs/reference/verdict.md).
  [[nodiscard]] std::optional<std::string> verdict() const;
  /// Everyone who ever joined a board of the job.
  [[nodiscard]] std::vector<SeenRank> ranks() const;
  /// Where a rank stands now, as an element of a verdict's "ranks" (state, op, seq, group, place ...), as JSON.
  [[nodiscard]] std::optional<std::string> standing_of(int rank) const;
  /// notes_of all boards: for the "notes" of a document that the launcher writes by itself. Those of a verdict of a
  /// board stand in it already. Slow, since it looks lines up: once, at the end.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// A process of the job was ended by a signal. Tell it as soon as it is known: the ranks' verdict then names the
  /// signal.
  void set_signal(pid_t pid, int signal);
  /// The process of a rank has ended well. One that has not joined a board will not come to it any more.
  void set_ended(int rank);
  /// While a rank is paused, nobody calls it lost or late, and the others' time-outs stand still.
  void set_paused(int rank, bool paused);
  /// Makes every rank end with this verdict (a limit passed, an interrupt), unless there is one already. Of a document
  /// that is too long for the board the ranks get the verdict and the cause.
  void impose(const std::string& verdict_json);
  /// Removes the boards' names, so that nothing is left behind.
  void remove_names() noexcept;

 private:
  std::string job_;
  ResolvePlace resolve_;
  std::vector<std::shared_ptr<Board>> boards_;
};

}  // namespace lockstep::sim
