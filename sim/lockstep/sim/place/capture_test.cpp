#include "lockstep/sim/place/capture.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <ucontext.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "lockstep/sim/place/module_table.h"
#include "lockstep/sim/place/own_modules.h"
#include "lockstep/sim/place/test_modules/capture_through.h"

namespace lockstep::sim {
namespace {

std::string module_of(std::uintptr_t address) {
  const auto table = ModuleTable::parse(own_module_table());
  const auto found = table.find(address);
  return found ? std::filesystem::path(found->module->path).filename().string() : "";
}

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").filename().string(); }

Frames through(CaptureThrough* library, Frames (*capture)(), std::uintptr_t garbage) {
  Frames found;
  library(capture, garbage, &found);
  return found;
}

class PlaceCapture : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto modules = usual_own_modules();
    modules.push_back({.prefix = "libplace_own", .has_frame_pointers = true});
    modules.push_back({.prefix = "libplace_cut", .has_frame_pointers = false});
    set_own_modules(modules);
  }
  static void TearDownTestSuite() { set_own_modules(usual_own_modules()); }
};

__attribute__((noinline)) std::vector<Frames> capture_and_unwind() { return {capture_frames(), unwind_frames()}; }

TEST_F(PlaceCapture, WalksTheSameFramesAsTheUnwinder) {
  const auto both = capture_and_unwind();
  ASSERT_GE(both[0].count, 2);
  EXPECT_TRUE(both[0].is_exact);
  ASSERT_GE(both[1].count, 2);
  EXPECT_EQ(both[0].addresses[1], both[1].addresses[1]);  // the call of capture_and_unwind
  EXPECT_EQ(module_of(both[0].addresses[0]), this_program());
}

TEST_F(PlaceCapture, PassesOverOwnModules) {
  const Frames frames = through(&capture_through_own, &capture_frames, kNoGarbage);
  ASSERT_GE(frames.count, 1);
  EXPECT_EQ(module_of(frames.addresses[0]), this_program());
  EXPECT_TRUE(frames.is_exact);
}

TEST_F(PlaceCapture, KeepsFramesOfTheUsersLibraries) {
  const Frames frames = through(&capture_through_bare, &capture_frames, kNoGarbage);
  ASSERT_GE(frames.count, 2);
  EXPECT_EQ(module_of(frames.addresses[0]), "libplace_bare.so");
  EXPECT_EQ(module_of(frames.addresses[1]), this_program());
}

// A frame that another own module lies behind: only the innermost run of the user's is kept.
TEST_F(PlaceCapture, EndsAtTheNextOwnFrame) {
  const Frames frames = through(
      &capture_through_own, +[] { return through(&capture_through_bare, &capture_frames, kNoGarbage); }, kNoGarbage);
  ASSERT_GE(frames.count, 2);
  EXPECT_LT(frames.count, Frames::kMax);  // the test's own callers are not among them
  EXPECT_EQ(module_of(frames.addresses[0]), "libplace_bare.so");
  EXPECT_EQ(module_of(frames.addresses[1]), this_program());
}

// What code without frame pointers leaves in the register: nothing readable, misaligned, below, above the stack.
TEST_F(PlaceCapture, SurvivesGarbage) {
  int local = 0;
  const auto here = reinterpret_cast<std::uintptr_t>(&local) & ~std::uintptr_t{15};
  for (const std::uintptr_t garbage : {std::uintptr_t{0}, std::uintptr_t{16}, here + 3, here - 64 * 1024,
                                       here + (1U << 30), ~std::uintptr_t{15}, std::uintptr_t{0x7fffffffffff0}}) {
    EXPECT_EQ(through(&capture_through_cut, &capture_frames, garbage).count, 0) << std::hex << garbage;
    const Frames unwound = through(&capture_through_cut, &unwind_frames, garbage);
    ASSERT_GE(unwound.count, 1) << std::hex << garbage;
    EXPECT_TRUE(unwound.is_exact);
    EXPECT_EQ(module_of(unwound.addresses[0]), this_program());
  }
}

TEST_F(PlaceCapture, SaysWhenFramesMayBeMissing) {
  EXPECT_FALSE(through(&capture_through_cut, &capture_frames, kNoGarbage).is_exact);
}

TEST_F(PlaceCapture, TheDoorAnswersWhereTheWalkCannot) {
  EXPECT_EQ(through(&capture_through_cut, &frames_here, 0).count, 0);
  const DoorScope door;
  for (const std::uintptr_t garbage : {std::uintptr_t{0}, kNoGarbage}) {
    const Frames frames = through(&capture_through_cut, &frames_here, garbage);
    EXPECT_EQ(frames.addresses, door.frames().addresses);
    EXPECT_TRUE(frames.is_exact);
  }
  // A walk that is certain says more: it is further in.
  EXPECT_NE(through(&capture_through_own, &frames_here, kNoGarbage).addresses, door.frames().addresses);
}

TEST_F(PlaceCapture, DoorsNestAndClose) {
  const auto behind_a_door = +[] {
    const DoorScope inner;
    return inner.frames();
  };
  EXPECT_EQ(through(&capture_through_cut, &frames_here, 0).count, 0);
  {
    const DoorScope outer;
    EXPECT_NE(behind_a_door().addresses, outer.frames().addresses);
    EXPECT_EQ(through(&capture_through_cut, &frames_here, 0).addresses, outer.frames().addresses);
    // Another thread has no door of ours.
    std::thread([] { EXPECT_EQ(through(&capture_through_cut, &frames_here, 0).count, 0); }).join();
  }
  EXPECT_EQ(through(&capture_through_cut, &frames_here, 0).count, 0);
}

TEST_F(PlaceCapture, WorksOnEveryThread) {
  std::thread([] {
    const Frames frames = through(&capture_through_own, &capture_frames, kNoGarbage);
    EXPECT_GE(frames.count, 1);
    EXPECT_EQ(module_of(frames.addresses[0]), this_program());
  }).join();
}

int frames_on_the_side = -1;

// A stack that the thread library knows nothing of (coroutines, signal stacks) may not be walked.
TEST_F(PlaceCapture, FindsNothingOnAForeignStack) {
  std::vector<char> stack(1 << 16);
  ucontext_t home;
  ucontext_t side;
  ASSERT_EQ(getcontext(&side), 0);
  side.uc_stack.ss_sp = stack.data();
  side.uc_stack.ss_size = stack.size();
  side.uc_link = &home;
  makecontext(
      &side, +[] { frames_on_the_side = capture_frames().count; }, 0);
  ASSERT_EQ(swapcontext(&home, &side), 0);
  EXPECT_EQ(frames_on_the_side, 0);
}

TEST_F(PlaceCapture, KnowsANewModuleAfterARefresh) {
  const auto table = ModuleTable::parse(own_module_table());
  const auto original = table.find(reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "capture_through_bare")));
  ASSERT_TRUE(original.has_value());
  const auto copy = std::filesystem::temp_directory_path() / "libplace_late.so";
  std::filesystem::copy_file(original->module->path, copy, std::filesystem::copy_options::overwrite_existing);
  void* library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(copy);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto late = reinterpret_cast<CaptureThrough*>(dlsym(library, "capture_through_bare"));

  EXPECT_EQ(through(late, &capture_frames, kNoGarbage).count, 0);  // nobody's: the walk ends
  refresh_modules();
  EXPECT_GE(through(late, &capture_frames, kNoGarbage).count, 2);
  dlclose(library);
}

}  // namespace
}  // namespace lockstep::sim
