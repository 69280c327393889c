#include "lockstep/sim/place/capture.h"

#include <pthread.h>
#include <unwind.h>

#include <utility>

#include "lockstep/sim/place/own_modules.h"

// The walk reads stack words that are nobody's variables; sanitizers would take that for a fault.
#define LOCKSTEP_RAW_STACK __attribute__((noinline, no_sanitize("address"), no_sanitize("thread")))

namespace lockstep::sim {

namespace {

constexpr int kMaxSteps = 64;
constexpr std::uintptr_t kFrameAlignment = 16;  // the x86-64 and AArch64 ABIs keep frame pointers so aligned

// The words that a function with a frame pointer leaves at it.
struct FrameRecord {
  std::uintptr_t caller_frame;
  std::uintptr_t return_address;
};

struct StackBounds {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;

  // Everything between a live frame and the stack's top is mapped, so what lies in the bounds may be read.
  [[nodiscard]] bool hold(std::uintptr_t frame) const noexcept {
    return frame >= low && frame < high && high - frame >= sizeof(FrameRecord);
  }
};

struct PerThread {
  StackBounds stack;
  const DoorScope* door = nullptr;
};

constinit thread_local PerThread this_thread;

StackBounds find_stack() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  std::size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<std::uintptr_t>(low);
  return {.low = begin, .high = begin + size};
}

// Looked up once a thread: for the main thread the C library reads /proc to find out.
const StackBounds& stack_of(PerThread& thread) noexcept {
  if (thread.stack.high == 0) thread.stack = find_stack();
  return thread.stack;
}

// Keeps, of the frames offered innermost first, the first run of the user's.
class UserFrames {
 public:
  // False when no further frame is wanted.
  bool offer(std::uintptr_t return_address) noexcept {
    // A call at a function's very end returns into the next function; the byte before is in the call itself.
    switch (segments_.owner_of(return_address - 1)) {
      case Owner::user:
        frames_.addresses[static_cast<std::size_t>(frames_.count++)] = return_address;
        return frames_.count < Frames::kMax;
      case Owner::own: return frames_.count == 0;
      case Owner::own_without_pointers:
        if (frames_.count == 0) frames_.is_exact = false;
        return frames_.count == 0;
      case Owner::nobody: return false;
    }
    return false;
  }

  [[nodiscard]] Frames& frames() noexcept { return frames_; }

 private:
  const SegmentTable& segments_ = SegmentTable::current();
  Frames frames_;
};

LOCKSTEP_RAW_STACK Frames walk(std::uintptr_t frame) noexcept {
  UserFrames wanted;
  const StackBounds& stack = stack_of(this_thread);
  for (int step = 0; step < kMaxSteps && stack.hold(frame); ++step) {
    const auto& record = *reinterpret_cast<const FrameRecord*>(frame);
    const std::uintptr_t caller = record.caller_frame;
    if (!wanted.offer(record.return_address)) break;
    // Whatever code without frame pointers left in the register must not lead us back, astray or out of the stack.
    if (caller <= frame || caller % kFrameAlignment != 0) break;
    frame = caller;
  }
  return wanted.frames();
}

struct Unwinding {
  UserFrames wanted;
  bool is_first = true;
};

_Unwind_Reason_Code take_unwound(_Unwind_Context* context, void* data) {
  auto& unwinding = *static_cast<Unwinding*>(data);
  if (std::exchange(unwinding.is_first, false)) return _URC_NO_REASON;  // unwind_frames itself
  const std::uintptr_t address = _Unwind_GetIP(context);
  return address != 0 && unwinding.wanted.offer(address) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

std::uintptr_t frame_of(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }

// What was found here, or what was noted at the door where that is surer.
Frames or_at_the_door(const Frames& here) noexcept {
  const DoorScope* const door = this_thread.door;
  if (door == nullptr || door->frames().count == 0) return here;
  if (here.count == 0) return door->frames();
  return door->frames().is_exact && !here.is_exact ? door->frames() : here;
}

}  // namespace

LOCKSTEP_RAW_STACK Frames capture_frames() noexcept { return walk(frame_of(__builtin_frame_address(0))); }

LOCKSTEP_RAW_STACK Frames frames_here() noexcept { return or_at_the_door(walk(frame_of(__builtin_frame_address(0)))); }

__attribute__((noinline)) Frames unwind_frames() noexcept {
  refresh_modules();  // next to nothing beside the unwinding
  Unwinding unwinding;
  _Unwind_Backtrace(take_unwound, &unwinding);
  unwinding.wanted.frames().is_exact = true;
  return unwinding.wanted.frames();
}

// A public function that another one calls through LibTorch takes over what was noted at the outer door.
LOCKSTEP_RAW_STACK DoorScope::DoorScope() noexcept
    : frames_(or_at_the_door(walk(frame_of(__builtin_frame_address(0))))), outer_(this_thread.door) {
  this_thread.door = this;
}

DoorScope::~DoorScope() { this_thread.door = outer_; }

}  // namespace lockstep::sim
