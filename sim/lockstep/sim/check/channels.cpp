#include "lockstep/sim/check/channels.h"

namespace lockstep::sim {

layout::Channel* find_channel(layout::RankSeat& seat, const ChannelId& id, bool enter) {
  const auto key = id.key();
  const auto start = mix(0, key);
  for (int probe = 0; probe < layout::kMaxChannels; ++probe) {
    auto& channel = seat.channels[(start + static_cast<std::uint64_t>(probe)) % layout::kMaxChannels];
    const auto there = channel.key.load(std::memory_order_acquire);
    if (there == key) return &channel;
    if (there != 0) continue;
    if (!enter) return nullptr;
    channel.key.store(key, std::memory_order_release);  // the seat's own rank alone enters, one thread at a time
    return &channel;
  }
  return nullptr;
}

std::uint64_t num_posted(layout::RankSeat& seat, const ChannelId& id) {
  const auto* channel = find_channel(seat, id, false);
  return channel == nullptr ? 0 : channel->posted.load(std::memory_order_seq_cst);
}

}  // namespace lockstep::sim
