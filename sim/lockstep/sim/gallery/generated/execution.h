#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/sim/gallery/generated/program.h"

namespace lockstep::sim::generated {

/// A moment of a run: how many events each rank has behind it. An event is a call that is posted, a wait that is over,
/// a key that is set, or the rank's end.
using Clock = std::vector<int>;
/// Whether `event` of `rank`, counted from 1, has happened by then.
inline bool has_happened(const Clock& clock, int rank, int event) {
  return event <= clock[static_cast<std::size_t>(rank)];
}
void join(Clock& clock, const Clock& other);

/// A call that a rank has made, and what had happened before: its own events up to this one, and those of other ranks
/// for which it had to wait.
struct Posted {
  const Call* call = nullptr;
  int rank = 0;
  Clock clock;

  [[nodiscard]] int event() const { return clock[static_cast<std::size_t>(rank)]; }
};

struct ChannelId {
  int group = 0;
  int from = 0;
  int to = 0;
  int tag = 0;

  auto operator<=>(const ChannelId&) const = default;
};

/// Messages from one rank to another under one tag: the n-th send is for the n-th receive.
struct Channel {
  std::vector<Posted> sends;
  std::vector<Posted> receives;
};

/// The call of which a rank waits to be done.
struct Awaited {
  const Call* call = nullptr;
  std::size_t sequence = 0;  ///< from 0, among the rank's collectives of the group or the calls of its channel
};

/// How a rank stands when nothing moves any more.
struct Standing {
  enum class End { blocked, left, failed };
  End end = End::blocked;
  Clock clock;                     ///< of its last event
  std::optional<Awaited> awaited;  ///< when it is blocked
  const Call* last = nullptr;      ///< the checked call that it made last
};

/// One run of a program, by ranks that do nothing but wait for each other: as far as it goes, without a checker that
/// would end it.
///
/// There is only one outcome. A call that can be done at some time can be done ever after, so the ranks' speed decides
/// when the events come, and not which. What a schedule can change is told by the clocks: whatever is not in an
/// event's past may come before it or after it.
class Execution {
 public:
  /// Ranks go no further once they have made a collective of this number in this group, counted from 0.
  struct Halt {
    int group = 0;
    std::size_t sequence = 0;
  };
  /// @param program  is referred to, and must stay
  explicit Execution(const Program& program, std::optional<Halt> halt = {});

  /// The collectives of a group: of each member, in its order.
  [[nodiscard]] const std::vector<std::vector<Posted>>& posted(int group) const {
    return groups_[static_cast<std::size_t>(group)].posted;
  }
  [[nodiscard]] const std::map<ChannelId, Channel>& channels() const { return channels_; }
  [[nodiscard]] Standing standing(int rank) const;

 private:
  struct Rank {
    std::size_t next = 0;                           // of its calls
    std::vector<Awaited> awaited;                   // what it waits for at present, the first one first
    std::map<int, std::vector<Awaited>> under_way;  // asynchronous calls that nobody has waited for, by line
    Clock clock;
    const Call* last = nullptr;
    bool is_halted = false;
    std::optional<Standing::End> end;
  };
  struct GroupState {
    std::vector<std::vector<Posted>> posted;  // by member
    std::vector<std::vector<Clock>> done;     // when each collective could be done, as far as it could
  };

  bool advance(int rank);  // by one event; false when it cannot
  bool advance(GroupState& group, const Group& members);
  bool finish_wait(int rank);
  void make(int rank, const Call& call);
  Awaited post(int rank, const Call& call);
  void count_event(int rank) { ++state(rank).clock[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Clock* done(int rank, const Awaited& awaited) const;  // null: not yet
  [[nodiscard]] Rank& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  const Program& program_;
  std::optional<Halt> halt_;
  std::vector<Rank> ranks_;
  std::vector<GroupState> groups_;
  std::map<ChannelId, Channel> channels_;
  std::map<std::string, Clock> keys_;
};

/// The channel of a send or a receive that `rank` makes.
ChannelId channel_of(int rank, const Call& call);

}  // namespace lockstep::sim::generated
