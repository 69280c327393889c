#pragma once

#include <cstdint>

#include "lockstep/sim/place/capture.h"

/// Leaves the frame pointer's register alone.
constexpr std::uintptr_t kNoGarbage = 1;

/// Calls `capture` from the library, libplace_cut with the frame pointer's register holding `garbage`.
using CaptureThrough = void(lockstep::sim::Frames (*capture)(), std::uintptr_t garbage, lockstep::sim::Frames* found);

extern "C" CaptureThrough capture_through_own, capture_through_cut, capture_through_bare;

/// Stands for a template of Lockstep's that is compiled into the user's program.
template <class Function>
__attribute__((noinline)) lockstep::sim::Frames call_in_our_header(Function function) {
  const auto frames = function();
  asm volatile("" : : : "memory");  // no tail call: this frame is to be seen
  return frames;
}

/// The same, inlined.
template <class Function>
__attribute__((always_inline)) inline lockstep::sim::Frames call_inlined_in_our_header(Function function) {
  return function();
}
