#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "lockstep/sim/rank.h"

namespace lockstep::sim::gallery {

using comm::Member;
using comm::ReduceOp;

/// A small program that shows one thing the simulator has to judge rightly.
struct Program {
  std::string name;
  int num_ranks = 0;
  void (*run)(Rank&) = nullptr;  ///< on each rank
  const char* file = "";         ///< where it stands, as the compiler was told
  int line = 0;                  ///< where it begins
  bool is_legal = false;         ///< nothing is wrong with it, however odd it looks

  /// What goes wrong in it: the name of its file, "order" for order.cpp.
  [[nodiscard]] std::string kind() const;
};

/// All that are linked in, by file and line.
std::vector<Program> programs();

/// For the macros. @return true
bool add_program(const Program& program);

}  // namespace lockstep::sim::gallery

/// A program with one planted fault, run by `num_ranks` ranks; its parameter is `Rank& rank`.
///
///     LOCKSTEP_FAULT(order_broadcast_first, 3) {
///       ...
///       rank.world().broadcast(x).wait();  // verdict: rank 1 here: mismatch
///     }
///
/// One line bears the verdict that is expected (markers.h): the call at which the culprit stands.
#define LOCKSTEP_FAULT(name, num_ranks) LOCKSTEP_GALLERY_PROGRAM(name, num_ranks, false)

/// A program that looks odd and is right: every verdict on it is false.
#define LOCKSTEP_LEGAL(name, num_ranks) LOCKSTEP_GALLERY_PROGRAM(name, num_ranks, true)

#define LOCKSTEP_GALLERY_PROGRAM(name, num_ranks, is_legal)                                          \
  void name(::lockstep::sim::Rank& rank);                                                            \
  [[maybe_unused]] const bool name##_is_known =                                                      \
      ::lockstep::sim::gallery::add_program({#name, num_ranks, name, __FILE__, __LINE__, is_legal}); \
  void name([[maybe_unused]] ::lockstep::sim::Rank& rank)
