#pragma once

#include <map>
#include <string>

namespace lockstep::comm {

/// Sockets of this process: descriptor -> "socket:[inode]", which no later socket has.
using Sockets = std::map<int, std::string>;

Sockets open_sockets();
Sockets sockets_opened_since(const Sockets& before);

/// Ends all traffic on those that are still open, so that every wait for them, here and at the peers, ends at once.
/// Listening ones are left alone: Gloo accepts connections on a thread of its own, which ends the process when its
/// socket is shut down.
void shut_down(const Sockets& sockets);

/// Keeps those that are still open until the process ends, even if their owner closes them: the peers notice nothing.
void keep_open(const Sockets& sockets);

}  // namespace lockstep::comm
