#pragma once

#include <array>
#include <cstdint>

namespace lockstep::sim {

/// Return addresses of a thread's innermost frames outside our own modules, innermost first. Plain data: it may lie in
/// memory that another process reads, which resolves it together with a ModuleTable.
struct Frames {
  static constexpr int kMax = 6;
  std::array<std::uintptr_t, kMax> addresses{};
  int count = 0;
  /// False when the walk crossed code without frame pointers: the innermost frames of the user's may be missing.
  bool is_exact = true;
};

/// Where the calling thread stands in the user's code, by the chain of frame pointers; about 0.1 us.
///
/// Frames in own modules (own_modules.h) are passed over until the first one outside; from there consecutive frames
/// outside are kept. The chain is followed only while it stays in the thread's stack and in known modules, so it cannot
/// fault, and where code without frame pointers (LibTorch) cuts it, `count` is 0.
Frames capture_frames() noexcept;

/// The same by the unwind tables: exact through any code; about 0.2 us for each frame passed, and much slower the first
/// time that it meets a module.
Frames unwind_frames() noexcept;

/// What capture_frames() finds; if that is nothing, or nothing certain, what the innermost DoorScope of the thread
/// found.
Frames frames_here() noexcept;

/// Stands at the entry of a public function and notes who called it. Calls that LibTorch makes further in, from code
/// that has no frame pointers, then still know the user's line.
class DoorScope {
 public:
  DoorScope() noexcept;
  ~DoorScope();
  DoorScope(const DoorScope&) = delete;
  DoorScope& operator=(const DoorScope&) = delete;

  [[nodiscard]] const Frames& frames() const noexcept { return frames_; }

 private:
  Frames frames_;
  const DoorScope* outer_;
};

}  // namespace lockstep::sim
