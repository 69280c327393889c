#pragma once

#include <cstdint>

#include "lockstep/sim/check/board_layout.h"

namespace lockstep::sim {

/// One direction of point-to-point calls between two members under one tag: its sends and receives pair in order.
struct ChannelId {
  int group = 0;
  int peer = -1;  ///< group rank of the partner; -1: any
  int tag = 0;
  bool sends = false;

  /// Never 0.
  [[nodiscard]] std::uint64_t key() const noexcept {
    return (std::uint64_t{1} << 63) | (static_cast<std::uint64_t>(sends) << 62) |
           (static_cast<std::uint64_t>(group) << 50) | (static_cast<std::uint64_t>(peer + 1) << 32) |
           static_cast<std::uint32_t>(tag);
  }
};

/// The channel in a rank's table; with `enter` it is put there. Null when it is not there, or there is no room.
layout::Channel* find_channel(layout::RankSeat& seat, const ChannelId& id, bool enter);

/// How many calls a rank has posted to a channel.
std::uint64_t num_posted(layout::RankSeat& seat, const ChannelId& id);

}  // namespace lockstep::sim
