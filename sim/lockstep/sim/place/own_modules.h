#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::sim {

/// A module whose frames are never the user's, known by how its file's name begins ("libtorch").
struct OwnModule {
  std::string prefix;
  bool has_frame_pointers = false;  ///< a walk along frame pointers through it misses no frame
};

/// The set that is in force from the start: liblockstep, LibTorch, the C and C++ run-time libraries.
std::vector<OwnModule> usual_own_modules();

/// Replaces the set of own modules.
void set_own_modules(std::vector<OwnModule> modules);

/// Looks which modules are loaded, if that has changed since the last look. Call it after a dlopen: a module that was
/// not seen yet counts as nobody's, and frames in it end a walk.
void refresh_modules();

/// Whose an address is.
enum class Owner : std::uint8_t {
  nobody,               ///< no executable segment that we know
  user,                 ///< the program, or a library of the user's
  own,                  ///< an own module that keeps frame pointers
  own_without_pointers  ///< an own module in which the chain of frame pointers may be cut
};

/// The executable segments of the process and their owners; never changes once made.
class SegmentTable {
 public:
  explicit SegmentTable(const std::vector<OwnModule>& own);

  [[nodiscard]] Owner owner_of(std::uintptr_t address) const noexcept {
    // A halving search without a branch to mispredict: the walk asks once per frame.
    const Segment* first = segments_.data();
    for (std::size_t count = segments_.size(); count > 1;) {
      const std::size_t half = count / 2;
      first += first[half].begin <= address ? half : 0;
      count -= half;
    }
    return first->begin <= address && address < first->end ? first->owner : Owner::nobody;
  }

  /// How many modules were loaded and unloaded in this process until the table was made.
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }

  /// The table in force. Readers take no lock, and a table that was replaced stays valid.
  static const SegmentTable& current() noexcept {
    const SegmentTable* table = current_.load(std::memory_order_acquire);
    return table != nullptr ? *table : first_look();
  }

 private:
  struct Segment {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    Owner owner = Owner::nobody;
  };

  static const SegmentTable& first_look() noexcept;

  friend void set_own_modules(std::vector<OwnModule> modules);
  friend void refresh_modules();

  static std::atomic<const SegmentTable*> current_;
  std::vector<Segment> segments_;  // by begin; never empty
  std::uint64_t generation_ = 0;
};

}  // namespace lockstep::sim
