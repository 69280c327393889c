#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lockstep/sim/check/call.h"
#include "lockstep/sim/check/published.h"

/// What lies in a job's shared memory. Each rank writes only its own seat, but for `is_paused` and `signal`, which are
/// its launcher's; the group table and the verdict are claimed by compare-and-swap. Pages that nobody touches cost
/// nothing.
namespace lockstep::sim::layout {

constexpr std::uint64_t kMagic = 0x4c4f434b53544550;  // "LOCKSTEP"
constexpr std::uint32_t kVersion = 2;
constexpr int kMaxRanks = 256;
constexpr int kMaxGroups = 128;
constexpr int kMaxThreads = 8;     // of one rank that communicate
constexpr int kMaxChannels = 256;  // (group, partner, tag, direction) of one rank
constexpr int kRing = 1024;        // how far members of a group may be apart and still be compared
constexpr int kChannelRing = 16;   // the same for the two ends of a channel
constexpr int kMaxFrames = 6;
constexpr int kMaxSplits = 64;
constexpr int kMaxSiteNotes = 16;  // of one rank
constexpr std::size_t kArenaBytes = 1 << 16;
constexpr std::size_t kModuleTableBytes = 1 << 15;
constexpr std::size_t kVerdictBytes = 1 << 18;

/// A place in the user's code.
struct Site {
  std::uint32_t place = 0;  ///< as text, in the rank's arena; 0: the frames say where
  std::uint32_t num_frames = 0;
  std::array<std::uint64_t, kMaxFrames> frames{};
};

/// A call as it was posted, for comparison in detail and for the report.
struct CallRecord {
  std::uint64_t number = 0;    ///< among this rank's calls, from 1
  std::uint64_t sequence = 0;  ///< among the group's collectives, or the channel's calls, from 1
  std::uint64_t fingerprint = 0;
  std::uint64_t label_hash = 0;  ///< 0: no label
  std::uint64_t site_hash = 0;   ///< of the place, where the others' must be the same; 0: it need not be
  std::int64_t step = 0;
  std::int32_t micro_step = 0;
  std::int32_t peer = -1;  ///< group rank
  std::int32_t tag = 0;
  std::uint32_t label = 0;        ///< in the rank's arena; 0: none
  std::uint32_t num_tensors = 0;  ///< of which `words` holds the first
  std::uint16_t group = 0;
  std::uint8_t operation = 0;
  std::uint8_t form = 0;
  std::uint8_t reduce_op = kNoReduceOp;
  std::uint8_t phase = 6;
  std::uint8_t num_words = 0;
  Site site;
  std::array<std::int64_t, Shapes::kMaxWords> words{};
};

/// Split sizes of an all-to-all, in a ring of their own since few calls have any.
struct Splits {
  std::uint64_t number = 0;  ///< of the call
  std::uint32_t count = 0;
  std::array<std::int64_t, kMaxSplits> sends{};
  std::array<std::int64_t, kMaxSplits> receives{};
};
constexpr int kSplitsRing = 64;

/// One line of a group's or channel's history: enough to compare. `sequence` is written last.
struct Line {
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<std::uint64_t> fingerprint{0};
  std::atomic<std::uint64_t> label_hash{0};
  std::atomic<std::uint64_t> site_hash{0};
  std::atomic<std::uint64_t> number{0};
};

enum class Membership : std::uint32_t { none, member, closed };

struct GroupSeat {
  std::atomic<std::uint64_t> posted{0};  ///< collectives so far
  std::atomic<Membership> membership{Membership::none};
  std::array<Line, kRing> lines;
};

struct Channel {
  std::atomic<std::uint64_t> key{0};  ///< 0: free
  std::atomic<std::uint64_t> posted{0};
  std::array<Line, kChannelRing> lines;
};

enum class WaitKind : std::uint32_t { none, collective, send, receive, receive_any, store, rendezvous };

/// What a thread waits for.
struct Wait {
  WaitKind kind = WaitKind::none;
  std::uint32_t group = 0;
  std::uint64_t sequence = 0;  ///< of the collective, or of the call in its channel
  std::uint64_t number = 0;    ///< of the call's record; 0: there is none
  std::int32_t peer = -1;      ///< group rank
  std::int32_t tag = 0;
  std::int64_t since_ns = 0;  ///< CLOCK_MONOTONIC
  std::uint32_t key = 0;      ///< store key in the rank's arena
  Site site;
};

struct ThreadSeat {
  std::atomic<std::int32_t> tid{0};  ///< 0: free
  Published<Wait> wait;              ///< written by the thread
  Published<Wait> future_wait;       ///< written by the rank's monitor: it waits in a future, which cannot be wrapped
};

struct Failure {
  std::int64_t step = 0;
  Site site;
  std::array<char, 64> kind{};
  std::array<char, 1024> message{};
};

/// A call of this rank that agrees with those of some others in everything but the place.
struct SiteNote {
  CallRecord mine;
  CallRecord theirs;
  std::int32_t rank = 0;                              ///< in the world, whose call `theirs` is
  std::array<std::uint64_t, kMaxRanks / 64> ranks{};  ///< bit r of all: world rank r calls from that place
};

/// What there is to say of a rank in the notes, as bits: tables of the board that were too small for it, and calls
/// whose outcome surprises.
enum class Remark : std::uint32_t {
  groups_full = 1,
  channels_full = 2,
  threads_full = 4,
  texts_full = 8,
  splits_full = 16,
  site_notes_full = 32,
  reduce_leaves_sums = 64,
  ranks_elsewhere = 128,
};

enum class Life : std::uint32_t { absent, live, left, failed };

struct RankSeat {
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::uint64_t> start_time{0};  ///< of the process, in ticks since boot: pids are used again
  std::atomic<Life> life{Life::absent};
  std::atomic<std::uint32_t> is_paused{0};
  /// Looks of the rank's monitor in a row at which a thread waited and no other one of the rank's did anything.
  std::atomic<std::uint32_t> still_looks{0};
  std::atomic<std::uint64_t> num_calls{0};
  std::atomic<std::uint64_t> num_uncompared{0};  ///< calls whose counterpart was no longer there to compare
  std::atomic<std::uint32_t> remarks{0};         ///< bits of Remark
  std::atomic<std::int32_t> signal{0};           ///< that ended the process, as its launcher saw it
  std::array<ThreadSeat, kMaxThreads> threads;
  Published<Failure> failure;
  std::array<Published<CallRecord>, kRing> records;  ///< of call n at n % kRing
  std::array<Published<Splits>, kSplitsRing> splits;
  std::atomic<std::uint32_t> num_site_notes{0};
  std::array<Published<SiteNote>, kMaxSiteNotes> site_notes;
  std::array<Channel, kMaxChannels> channels;
  std::atomic<std::uint32_t> arena_used{1};  // offset 0 means "no text"
  std::array<char, kArenaBytes> arena;       // zero-terminated texts
  std::atomic<std::uint32_t> module_table_size{0};
  std::array<char, kModuleTableBytes> module_table;
  std::array<GroupSeat, kMaxGroups> groups;
};

/// What any process may write, and only one does.
struct Claim {
  std::atomic<std::uint64_t> writer{0};    ///< its process (process.h: id_of); 0: nobody yet
  std::atomic<std::uint32_t> is_there{0};  ///< written, for good; a futex word
};

struct Group {
  Claim claim;
  std::uint64_t key = 0;  ///< of name, members and instance
  std::uint32_t size = 0;
  std::array<char, 96> name{};
  std::array<std::int16_t, kMaxRanks> ranks{};  ///< world ranks in group order
};

struct VerdictSpace {
  Claim claim;
  std::uint32_t size = 0;
  std::array<char, kVerdictBytes> json;
};

struct Header {
  std::atomic<std::uint64_t> magic{0};  ///< written last
  std::uint32_t version = kVersion;
  std::uint32_t world_size = 0;
  std::atomic<std::uint32_t> num_joined{0};
  std::array<Group, kMaxGroups> groups;
  VerdictSpace verdict;
};

constexpr std::size_t bytes_for(int world_size) {
  constexpr std::size_t kPage = 4096;
  const auto header = (sizeof(Header) + kPage - 1) / kPage * kPage;
  const auto seat = (sizeof(RankSeat) + kPage - 1) / kPage * kPage;
  return header + static_cast<std::size_t>(world_size) * seat;
}

}  // namespace lockstep::sim::layout
