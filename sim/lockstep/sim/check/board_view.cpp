#include "lockstep/sim/check/board_view.h"

#include <algorithm>
#include <stdexcept>

#include "lockstep/sim/check/board.h"
#include "lockstep/sim/check/judge.h"
#include "lockstep/sim/check/verdict_document.h"

namespace lockstep::sim {

BoardView::BoardView(std::string job, ResolvePlace resolve) : job_(std::move(job)), resolve_(std::move(resolve)) {}
BoardView::~BoardView() = default;

void BoardView::refresh() {
  for (const auto& name : Board::names_of(job_)) {
    if (std::ranges::any_of(boards_, [&name](const auto& board) { return board->name() == name; })) continue;
    try {
      boards_.push_back(Board::open(name));
    } catch (const std::runtime_error&) {  // its maker has died while making it
    }
  }
}

std::optional<std::string> BoardView::verdict() const {
  for (const auto& board : boards_) {
    if (auto verdict = board->verdict()) return verdict;
  }
  return std::nullopt;
}

std::vector<SeenRank> BoardView::ranks() const {
  std::vector<SeenRank> ranks;
  for (const auto& board : boards_) {
    for (int rank = 0; rank < board->world_size(); ++rank) {
      const auto& seat = board->seat(rank);
      if (seat.life == layout::Life::absent) continue;
      const bool is_checked = std::ranges::any_of(
          seat.groups, [](const layout::GroupSeat& group) { return group.membership != layout::Membership::none; });
      ranks.push_back({.rank = rank, .pid = seat.pid, .is_checked = is_checked});
    }
  }
  return ranks;
}

std::optional<std::string> BoardView::standing_of(int rank) const {
  for (auto board = boards_.rbegin(); board != boards_.rend(); ++board) {
    if (rank >= (*board)->world_size() || (*board)->seat(rank).life == layout::Life::absent) continue;
    return to_json(sim::standing_of(**board, rank), **board, resolve_);
  }
  return std::nullopt;
}

void BoardView::set_paused(int rank, bool paused) {
  for (const auto& board : boards_) {
    if (rank < board->world_size()) board->seat(rank).is_paused = paused ? 1 : 0;
  }
}

void BoardView::impose(const std::string& verdict_json) {
  for (const auto& board : boards_) board->post_verdict(verdict_json);
}

void BoardView::remove_names() noexcept {
  for (const auto& name : Board::names_of(job_)) Board::remove_name(name);
}

}  // namespace lockstep::sim
