#include "lockstep/sim/check/board_view.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "lockstep/sim/check/board.h"
#include "lockstep/sim/check/judge.h"
#include "lockstep/sim/check/verdict_document.h"

namespace lockstep::sim {
namespace {

// From where a call comes: on one rank, and on all that call from the same place.
struct Origin {
  int rank = 0;
  layout::Site site;
  std::set<int> ranks;
};

// A call on whose place the ranks do not agree.
struct Scattered {
  layout::CallRecord call;
  std::map<std::uint64_t, Origin> origins;  // by the place's hash

  std::set<int>& ranks_at(const layout::CallRecord& record, int rank) {
    return origins.try_emplace(record.site_hash, Origin{.rank = rank, .site = record.site}).first->second.ranks;
  }
};

// Each rank notes what it sees of a call, and together they tell who called from where.
std::map<std::pair<std::uint64_t, std::uint16_t>, Scattered> scattered_calls(const Board& board) {
  std::map<std::pair<std::uint64_t, std::uint16_t>, Scattered> calls;  // by number and group
  for (int rank = 0; rank < board.world_size(); ++rank) {
    for (const auto& published : board.seat(rank).site_notes) {
      const auto note = published.load();
      if (!note) break;
      auto& call =
          calls.try_emplace({note->mine.sequence, note->mine.group}, Scattered{.call = note->mine}).first->second;
      call.ranks_at(note->mine, rank).insert(rank);
      auto& theirs = call.ranks_at(note->theirs, note->rank);
      for (int other = 0; other < board.world_size(); ++other) {
        const auto index = static_cast<std::size_t>(other);
        if ((note->ranks[index / 64] >> index % 64 & 1) != 0) theirs.insert(other);
      }
    }
  }
  return calls;
}

// Where its callers are; those of one line are together, though a compiler may have made two calls of it.
std::vector<Callers> callers_of(const Scattered& call, const Board& board, const ResolvePlace& resolve) {
  std::vector<Callers> callers;
  for (const auto& [hash, origin] : call.origins) {
    const auto place = place_of(origin.site, board.seat(origin.rank), resolve);
    auto same = place.empty() ? callers.end() : std::ranges::find(callers, place, &Callers::place);
    if (same == callers.end()) same = callers.insert(callers.end(), {.place = place});
    same->ranks.insert(same->ranks.end(), origin.ranks.begin(), origin.ranks.end());
    std::ranges::sort(same->ranks);
  }
  std::ranges::sort(callers, {}, [](const Callers& each) { return each.ranks.front(); });
  return callers;
}

void add_site_notes(std::vector<std::string>& notes, const Board& board, const ResolvePlace& resolve) {
  std::vector<std::set<std::string>> told;  // each set of places once
  for (const auto& [key, call] : scattered_calls(board)) {
    const auto callers = callers_of(call, board, resolve);
    std::set<std::string> places;
    for (const auto& each : callers) places.insert(each.place);
    const bool is_told =
        std::ranges::any_of(told, [&](const auto& other) { return std::ranges::includes(other, places); });
    if (callers.size() < 2 || is_told) continue;
    notes.push_back(describe_sites(call.call, board, callers));
    told.push_back(std::move(places));
  }
}

void add_remarks(std::vector<std::string>& notes, const Board& board) {
  using layout::Remark;
  const std::map<Remark, std::string> sentences = {
      {Remark::groups_full, "there is room for " + std::to_string(layout::kMaxGroups) +
                                " groups: calls of those that came later were not checked"},
      {Remark::channels_full,
       "there is room for " + std::to_string(layout::kMaxChannels) +
           " pairings of partner, tag and direction: sends and receives of the others were not checked"},
      {Remark::threads_full, "there is room for " + std::to_string(layout::kMaxThreads) +
                                 " threads that communicate: for what the others waited was not seen"},
      {Remark::texts_full, "there is room for " + std::to_string(layout::kArenaBytes / 1024) +
                               " KiB of names, keys and places: later ones are missing"},
      {Remark::splits_full, "the split sizes of an all-to-all were compared for the first " +
                                std::to_string(layout::kMaxSplits) + " members of the group"},
      {Remark::site_notes_full, "there is room for " + std::to_string(layout::kMaxSiteNotes) +
                                    " pairs of call sites that differ: later ones are not told"},
      {Remark::reduce_leaves_sums,
       "a reduce leaves partial sums in the tensors of ranks other than the root: what is in them is not defined"},
      {Remark::ranks_elsewhere, std::string(kRanksElsewhere)},
  };
  for (const auto& [remark, sentence] : sentences) {
    std::vector<int> ranks;
    for (int rank = 0; rank < board.world_size(); ++rank) {
      if ((board.seat(rank).remarks & static_cast<std::uint32_t>(remark)) != 0) ranks.push_back(rank);
    }
    if (!ranks.empty()) notes.push_back(sentence + " (" + list_ranks(ranks) + ")");
  }
}

void add_note_of_uncompared(std::vector<std::string>& notes, const Board& board) {
  std::uint64_t number = 0;
  for (int rank = 0; rank < board.world_size(); ++rank) number += board.seat(rank).num_uncompared;
  if (number == 0) return;
  notes.push_back(std::to_string(number) + (number == 1 ? " call was" : " calls were") +
                  " not compared: another rank was more than " + std::to_string(layout::kRing) +
                  " calls of the group, or " + std::to_string(layout::kChannelRing) + " messages, ahead");
}

}  // namespace

std::vector<std::string> notes_of(const Board& board, const ResolvePlace& resolve) {
  constexpr std::size_t kShown = 16;
  std::vector<std::string> notes;
  add_note_of_uncompared(notes, board);
  add_remarks(notes, board);
  add_site_notes(notes, board, resolve);
  if (notes.size() <= kShown) return notes;
  const auto num_more = notes.size() - kShown;
  notes.resize(kShown);
  notes.push_back("and " + std::to_string(num_more) + " more");
  return notes;
}

BoardView::BoardView(std::string job, ResolvePlace resolve) : job_(std::move(job)), resolve_(std::move(resolve)) {}
BoardView::~BoardView() = default;

void BoardView::refresh() {
  for (const auto& name : Board::names_of(job_)) {
    if (std::ranges::any_of(boards_, [&name](const auto& board) { return board->name() == name; })) continue;
    try {
      if (auto board = Board::open_if_made(name)) boards_.push_back(std::move(board));
    } catch (const std::runtime_error&) {  // its name was removed in the meantime, or it is none of ours
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

std::vector<std::string> BoardView::notes() const {
  std::vector<std::string> notes;
  for (const auto& board : boards_) {
    for (auto& note : notes_of(*board, resolve_)) {
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    }
  }
  return notes;
}

void BoardView::set_signal(pid_t pid, int signal) {
  for (const auto& board : boards_) {
    for (int rank = 0; rank < board->world_size(); ++rank) {
      if (board->seat(rank).pid == pid) board->seat(rank).signal = signal;
    }
  }
}

void BoardView::set_ended(int rank) {
  for (const auto& board : boards_) {
    auto absent = layout::Life::absent;
    if (rank < board->world_size()) board->seat(rank).life.compare_exchange_strong(absent, layout::Life::left);
  }
}

void BoardView::set_paused(int rank, bool paused) {
  for (const auto& board : boards_) {
    if (rank < board->world_size()) board->seat(rank).is_paused = paused ? 1 : 0;
  }
}

void BoardView::impose(const std::string& verdict_json) {
  const auto fitted = fitted_to_board(verdict_json);
  for (const auto& board : boards_) board->post_verdict(fitted);
}

void BoardView::remove_names() noexcept {
  for (const auto& name : Board::names_of(job_)) Board::remove_name(name);
}

}  // namespace lockstep::sim
