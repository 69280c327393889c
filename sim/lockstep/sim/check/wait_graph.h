#pragma once

#include <vector>

namespace lockstep::sim {

/// What one thread of a rank needs before it can go on: all of these ranks to act, or any of them.
struct Need {
  std::vector<int> ranks;  ///< empty: nothing more, it is about to go on
  bool any = false;        ///< one of them is enough: a receive from any rank, a key of the store
};

/// A rank in the wait-for graph.
struct RankNode {
  bool is_gone = false;     ///< ended, failed, or never to come: it will not act again
  std::vector<Need> needs;  ///< of its waiting threads; empty: it runs
};

/// Which ranks will never go on, whatever those that run may do.
///
/// A rank moves if it runs, or if one of its threads waits only for ranks that move. What is left when no more can be
/// added waits for itself: a cycle, or a rank that is gone. Ranks that are gone are not listed themselves.
///
/// @source Holt 1972, Some Deadlock Properties of Computer Systems: reduction of a general resource graph
std::vector<int> stuck_ranks(const std::vector<RankNode>& nodes);

/// The rank where it began, or -1: where the stuck ranks' needs do not tell.
///
/// The one rank that is gone comes first; where several are, the one that waits for them by itself; else the one rank
/// for which all the other stuck ones wait, while it waits for something else.
int first_of(const std::vector<RankNode>& nodes, const std::vector<int>& stuck);

}  // namespace lockstep::sim
