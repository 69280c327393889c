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
  line.site_hash.store(record.site_hash, std::memory_order_relaxed);
  line.number.store(record.number, std::memory_order_relaxed);
  line.sequence.store(record.sequence, std::memory_order_release);
}

}  // namespace

CheckedGroup::CheckedGroup(std::shared_ptr<CheckedRank> rank, std::optional<int> index, std::string name,
                           std::vector<int> ranks)
    : rank_(std::move(rank)),
      index_(index),
      name_(std::move(name)),
      ranks_(std::move(ranks)),
      group_rank_(static_cast<int>(std::ranges::find(ranks_, rank_->rank_) - ranks_.begin())) {}

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
                            .phase = context.phase};
  if (call.shapes != nullptr) {
    const auto words = call.shapes->words();
    record.num_tensors = call.shapes->num_tensors();
    record.num_words = static_cast<std::uint8_t>(words.size());
    std::copy(words.begin(), words.end(), record.words.begin());
  }
  record.fingerprint = fingerprint(call);
  if (is_made_at_one_place(call, group_rank_)) record.site_hash = context.site.hash;
  if (!context.label.empty()) record.label_hash = mix(1, context.label);
  layout::Wait wait;
  {
    const std::lock_guard lock(rank.mutex_);
    record.label = rank.text(context.label);
    record.site = rank.site_of(context.site);
    record.number = ++rank.num_calls_;
    if (!call.sends.empty()) {
      layout::Splits splits{.number = record.number};
      splits.count = static_cast<std::uint32_t>(std::min<std::size_t>(call.sends.size(), layout::kMaxSplits));
      if (splits.count < call.sends.size()) rank.remark(layout::Remark::splits_full);
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
    rank_->remark(layout::Remark::channels_full);
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
  const Posted posted{.rank = rank_.get(), .group = *index_, .group_rank = group_rank_, .sequence = sequence};
  if (is_point_to_point(call.operation)) {
    if (call.peer < 0 || sequence == 0) return;
    compare_ends(posted,
                 {.group = *index_, .peer = call.peer, .tag = call.tag, .sends = call.operation == Operation::send},
                 ranks_, record);
    return;
  }
  bool is_any_too_far = false;
  std::vector<int> at_other_places;
  for (int member = 0; member < static_cast<int>(ranks_.size()); ++member) {
    if (member == group_rank_) continue;
    auto& seat = rank_->board_->seat(ranks_[static_cast<std::size_t>(member)]);
    const auto& theirs = seat.groups[static_cast<std::size_t>(*index_)];
    if (theirs.posted.load(std::memory_order_seq_cst) < sequence) continue;
    const auto& line = theirs.lines[sequence % layout::kRing];
    if (line.sequence.load(std::memory_order_acquire) != sequence) {
      is_any_too_far = true;
      continue;
    }
    const bool is_elsewhere = known_and_differ(line.site_hash.load(std::memory_order_relaxed), record.site_hash);
    const bool differs = line.fingerprint.load(std::memory_order_relaxed) != record.fingerprint ||
                         known_and_differ(line.label_hash.load(std::memory_order_relaxed), record.label_hash) ||
                         (is_elsewhere && rank_->options_.strict_places) ||
                         (!call.sends.empty() && splits_differ(posted, call, seat, member, line.number));
    std::atomic_thread_fence(std::memory_order_acquire);
    if (line.sequence.load(std::memory_order_relaxed) != sequence) continue;  // overwritten in the meantime
    if (differs) throw_mismatch(posted, ranks_);
    if (is_elsewhere) at_other_places.push_back(member);
  }
  if (is_any_too_far) ++rank_->seat_.num_uncompared;
  if (!at_other_places.empty()) note_sites(record, at_other_places);
}

void CheckedGroup::note_sites(const layout::CallRecord& mine, const std::vector<int>& members) {
  const std::lock_guard lock(rank_->mutex_);
  std::vector<layout::SiteNote> notes;
  for (const int member : members) {
    const auto rank = static_cast<std::size_t>(ranks_[static_cast<std::size_t>(member)]);
    const auto& seat = rank_->board_->seat(static_cast<int>(rank));
    const auto& line = seat.groups[mine.group].lines[mine.sequence % layout::kRing];
    const std::pair pair(mine.site_hash, line.site_hash.load());
    auto note = std::ranges::find(notes, pair.second, [](const auto& other) { return other.theirs.site_hash; });
    if (note == notes.end()) {
      if (rank_->noted_sites_.contains(pair)) continue;
      const auto theirs = record_of(seat, line.number);
      if (!theirs || theirs->site_hash != pair.second) continue;  // overwritten in the meantime
      rank_->noted_sites_.insert(pair);
      note = notes.insert(notes.end(), {.mine = mine, .theirs = *theirs, .rank = static_cast<std::int32_t>(rank)});
    }
    note->ranks[rank / 64] |= std::uint64_t{1} << rank % 64;
  }
  for (const auto& note : notes) {
    auto& count = rank_->seat_.num_site_notes;
    if (count == layout::kMaxSiteNotes) return rank_->remark(layout::Remark::site_notes_full);
    rank_->seat_.site_notes[count].store(note);
    ++count;
  }
}

}  // namespace lockstep::sim
