#include "lockstep/sim/check/checked_group.h"

#include <algorithm>

#include "lockstep/sim/check/channels.h"
#include "lockstep/sim/check/mismatch.h"

namespace lockstep::sim {
namespace {

using layout::WaitKind;

void write_line(layout::Line& line, const layout::CallRecord& record) {
  line.sequence.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  line.fingerprint.store(record.fingerprint, std::memory_order_relaxed);
  line.label_hash.store(record.label_hash, std::memory_order_relaxed);
  line.number.store(record.number, std::memory_order_relaxed);
  line.sequence.store(record.sequence, std::memory_order_release);
}

}  // namespace

CheckedGroup::CheckedGroup(std::shared_ptr<CheckedRank> rank, std::optional<int> index, std::string name,
                           std::vector<int> ranks)
    : rank_(std::move(rank)), index_(index), name_(std::move(name)), ranks_(std::move(ranks)) {}

CheckedGroup::~CheckedGroup() {
  if (index_) rank_->seat_.groups[static_cast<std::size_t>(*index_)].membership.store(layout::Membership::closed);
}

layout::Wait CheckedGroup::rendezvous() const {
  if (!index_) return {};
  return {.kind = WaitKind::rendezvous, .group = static_cast<std::uint32_t>(*index_), .since_ns = now_ns()};
}

layout::Wait CheckedGroup::post(const Call& call, const Context& context) {
  auto& rank = *rank_;
  if (rank.options_.level == Level::off || !index_) return {};
  // What names no member the backend refuses by itself, before anything is sent.
  if (call.peer < -1 || call.peer >= static_cast<int>(ranks_.size())) return {};
  rank.throw_if_judged();
  rank.thread_seat();
  layout::CallRecord record{.step = context.step,
                            .micro_step = context.micro_step,
                            .peer = call.peer,
                            .tag = call.tag,
                            .group = static_cast<std::uint16_t>(*index_),
                            .operation = static_cast<std::uint8_t>(call.operation),
                            .form = static_cast<std::uint8_t>(call.form),
                            .reduce_op = call.reduce_op,
                            .phase = context.phase,
                            .asynchronous = call.asynchronous};
  record.num_frames = static_cast<std::uint8_t>(layout::copy_frames(record.frames, context.frames));
  if (call.shapes != nullptr) {
    const auto words = call.shapes->words();
    record.num_words = static_cast<std::uint8_t>(words.size());
    std::copy(words.begin(), words.end(), record.words.begin());
  }
  record.fingerprint = fingerprint(call);
  // The two ends of a message stand at different places by nature.
  if (rank.options_.strict_places && !is_point_to_point(call.operation)) {
    record.fingerprint = mix(record.fingerprint, context.place.empty() ? context.place_hash : mix(0, context.place));
  }
  if (!context.label.empty()) record.label_hash = mix(1, context.label);
  layout::Wait wait;
  {
    const std::lock_guard lock(rank.mutex_);
    record.label = rank.text(context.label);
    record.place = rank.text(context.place);
    record.number = ++rank.num_calls_;
    if (!call.sends.empty()) {
      layout::Splits splits{.number = record.number};
      splits.count = static_cast<std::uint32_t>(std::min<std::size_t>(call.sends.size(), layout::kMaxSplits));
      std::copy_n(call.sends.begin(), splits.count, splits.sends.begin());
      std::copy_n(call.receives.begin(), splits.count, splits.receives.begin());
      rank.seat_.splits[record.number % layout::kSplitsRing].store(splits);
    }
    wait = is_point_to_point(call.operation) ? post_to_channel(call, record) : post_collective(record);
    rank.seat_.num_calls.store(record.number);
  }
  const bool is_sampled = rank.options_.level == Level::full || wait.sequence % rank.options_.sample_every == 0;
  if (is_sampled) compare(call, wait.sequence, record);
  return wait;
}

layout::Wait CheckedGroup::post_collective(layout::CallRecord& record) {
  record.sequence = ++sequence_;
  rank_->seat_.records[record.number % layout::kRing].store(record);
  auto& seat = rank_->seat_.groups[static_cast<std::size_t>(*index_)];
  auto& line = seat.lines[record.sequence % layout::kRing];
  write_line(line, record);
  // Sequentially consistent, as the look at the others' counts after it: of two ranks that post at the same time at
  // least one sees the other.
  seat.posted.store(record.sequence, std::memory_order_seq_cst);
  return {.kind = WaitKind::collective,
          .group = static_cast<std::uint32_t>(*index_),
          .sequence = record.sequence,
          .number = record.number};
}

layout::Wait CheckedGroup::post_to_channel(const Call& call, layout::CallRecord& record) {
  const ChannelId id{.group = *index_, .peer = call.peer, .tag = call.tag, .sends = call.operation == Operation::send};
  auto* channel = find_channel(rank_->seat_, id, true);
  record.sequence = channel == nullptr ? 0 : channel->posted.load(std::memory_order_relaxed) + 1;
  rank_->seat_.records[record.number % layout::kRing].store(record);
  if (channel == nullptr) {
    ++rank_->seat_.num_uncompared;
    return {};
  }
  auto& line = channel->lines[record.sequence % layout::kChannelRing];
  write_line(line, record);
  channel->posted.store(record.sequence, std::memory_order_seq_cst);
  const auto kind = id.sends ? WaitKind::send : call.peer < 0 ? WaitKind::receive_any : WaitKind::receive;
  return {.kind = kind,
          .group = static_cast<std::uint32_t>(*index_),
          .sequence = record.sequence,
          .number = record.number,
          .peer = call.peer,
          .tag = call.tag};
}

void CheckedGroup::compare(const Call& call, std::uint64_t sequence, const layout::CallRecord& record) {
  const auto me = static_cast<int>(std::ranges::find(ranks_, rank_->rank_) - ranks_.begin());
  const Posted posted{.rank = rank_.get(), .group = *index_, .group_rank = me, .sequence = sequence};
  if (is_point_to_point(call.operation)) {
    if (call.peer < 0 || sequence == 0) return;
    compare_ends(posted,
                 {.group = *index_, .peer = call.peer, .tag = call.tag, .sends = call.operation == Operation::send},
                 ranks_, record);
    return;
  }
  for (std::size_t member = 0; member < ranks_.size(); ++member) {
    if (static_cast<int>(member) == me) continue;
    auto& seat = rank_->board_->seat(ranks_[member]);
    const auto& theirs = seat.groups[static_cast<std::size_t>(*index_)];
    if (theirs.posted.load(std::memory_order_seq_cst) < sequence) continue;
    const auto& line = theirs.lines[sequence % layout::kRing];
    if (line.sequence.load(std::memory_order_acquire) != sequence) {
      ++rank_->seat_.num_uncompared;
      continue;
    }
    const bool differs =
        line.fingerprint.load(std::memory_order_relaxed) != record.fingerprint ||
        labels_differ(line.label_hash.load(std::memory_order_relaxed), record.label_hash) ||
        (!call.sends.empty() && splits_differ(posted, call, seat, static_cast<int>(member), line.number));
    std::atomic_thread_fence(std::memory_order_acquire);
    if (differs && line.sequence.load(std::memory_order_relaxed) == sequence) throw_mismatch(posted, ranks_);
  }
}

}  // namespace lockstep::sim
