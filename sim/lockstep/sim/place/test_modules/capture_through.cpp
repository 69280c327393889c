// A library that the tests of place/ call through. It is built several times, each with another name for its function:
//   libplace_own.so    as one of our own modules
//   libplace_cut.so    the same, without frame pointers, as LibTorch's libraries are
//   libplace_bare.so   a user's library without debug information
#include "lockstep/sim/place/test_modules/capture_through.h"

#ifndef LOCKSTEP_CAPTURE_THROUGH
#error "name the function: -DLOCKSTEP_CAPTURE_THROUGH=capture_through_own"
#endif

// Sanitizers need the register that we spoil.
extern "C" __attribute__((visibility("default"), no_sanitize("address"), no_sanitize("thread"))) void
LOCKSTEP_CAPTURE_THROUGH(lockstep::sim::Frames (*capture)(), [[maybe_unused]] std::uintptr_t garbage,
                         lockstep::sim::Frames* found) {
#ifdef LOCKSTEP_NO_FRAME_POINTER
  if (garbage != kNoGarbage) asm volatile("mov %0, %%rbp" : : "r"(garbage) : "rbp");
#endif
  *found = capture();
}
