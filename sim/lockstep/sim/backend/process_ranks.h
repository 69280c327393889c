#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/sim/check/checked_rank.h"
#include "lockstep/sim/check/monitor.h"

namespace lockstep::sim {

/// A rank of this process with its monitor. A process has one, or one per thread that is a rank.
struct WatchedRank {
  ~WatchedRank();

  c10::intrusive_ptr<c10d::Store> store;  // by whose address the rank is found
  std::shared_ptr<CheckedRank> rank;
  std::unique_ptr<Monitor> monitor;
  bool is_launched = false;
};

struct RankRequest {
  c10::intrusive_ptr<c10d::Store> store;
  std::vector<int> ranks;  ///< global ranks of the group that is being made
  int group_rank = 0;
  int world_size = 0;  ///< 0: as large as the group's ranks ask for
  std::string job;
  bool is_launched = false;  ///< by a launcher that looks at the board by its name, and removes the name
  CheckOptions options;
  std::string module_table;  ///< by which `resolve` finds the lines of this process's addresses
  ResolvePlace resolve;      ///< none: call sites are known as text
};

/// The rank that the request is for: an existing one of this process, or a new one, which agrees with the others on a
/// board by way of the store. Only ranks of one host share a board.
std::shared_ptr<WatchedRank> rank_for(const RankRequest& request);

/// After all members of a group have met: where some are not on this host's board, its lowest rank says so, once.
/// @param group  the one that was made
void tell_of_other_hosts(const WatchedRank& watched, const std::vector<int>& group);

/// All that this process has.
std::vector<std::shared_ptr<WatchedRank>> ranks_of_process();

/// The rank that the calling thread belongs to: the one for which it made a group last, or the process's only one.
std::shared_ptr<WatchedRank> rank_of_thread();

}  // namespace lockstep::sim
