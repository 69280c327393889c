#pragma once

#include <vector>

#include "lockstep/base/export.h"
#include "lockstep/sim/device/memory_report.h"

namespace lockstep::sim {

/// Counts the memory of CPU tensors, per rank and phase, exactly.
///
/// A block is booked on the rank that allocates it, in the phase that the rank's account is in, and stays in those
/// books until it is freed, on whichever thread. A rank that is a process has one set of books for all its threads;
/// ranks that are threads of one process have their own, each followed into autograd's threads and into those of
/// RankContext::start_thread.
///
/// Counted are the bytes that are asked of LibTorch's CPU allocator, oneDNN's through it included. Not counted are
/// tensors from before the installation, memory that tensors only borrow (from_blob), what kernels allocate by
/// themselves, and what threads allocate that belong to no rank. (A process that is one rank is it from the moment that
/// anything has asked for RankContext::current().)
///
/// The numbers a program computes are the same with and without: the memory is what it would have got anyway.
class LOCKSTEP_API TensorMemory {
 public:
  /// Puts the counting allocator before the process's CPU allocator, and switches it on. Call it before the ranks
  /// start or, in a rank that is a process, before the first tensor; again, it only switches on. It cannot be taken
  /// away, because blocks outlive any scope; switched off it costs an allocation one branch.
  /// @throws NotSupported  where the program has an allocator that cannot be wrapped, or that insists on its place
  static void install();

  /// What is allocated while it is off is never booked; what was booked before still leaves the books when it is freed.
  static void switch_off() noexcept;
  static bool is_on() noexcept;

  /// The calling thread's rank. @throws NoRankContext
  static MemoryReport report();
  /// All ranks that this process has had since the installation, those that have ended too, in the order of their first
  /// allocations.
  static std::vector<MemoryReport> reports();

  /// Counts the peaks of the calling thread's rank from now. @throws NoRankContext
  static void reset_peaks();
};

}  // namespace lockstep::sim
