#include "lockstep/sim/place/resolver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "lockstep/sim/place/own_modules.h"
#include "lockstep/sim/place/test_modules/capture_through.h"

namespace digits {

using lockstep::sim::Frames;

int line_of_call = 0;
int line_of_inner = 0;

__attribute__((noinline)) Frames plain() {
  line_of_call = __LINE__ + 1;
  Frames frames = lockstep::sim::capture_frames();
  asm volatile("" : : : "memory");
  return frames;
}

__attribute__((always_inline)) inline Frames innermost() {
  line_of_inner = __LINE__ + 1;
  Frames frames = lockstep::sim::capture_frames();
  asm volatile("" : : : "memory");
  return frames;
}

__attribute__((noinline)) Frames with_inlined() { return innermost(); }

__attribute__((noinline)) Frames through_function() {
  const std::function<Frames()> step = [] {
    line_of_call = __LINE__ + 1;
    Frames frames = lockstep::sim::capture_frames();
    asm volatile("" : : : "memory");
    return frames;
  };
  return step();
}

__attribute__((noinline)) Frames through_our_header() {
  line_of_call = __LINE__ + 1;
  Frames frames = call_in_our_header(&lockstep::sim::capture_frames);
  asm volatile("" : : : "memory");
  return frames;
}

__attribute__((noinline)) Frames through_our_inlined_header() {
  line_of_call = __LINE__ + 1;
  Frames frames = call_inlined_in_our_header(&lockstep::sim::capture_frames);
  asm volatile("" : : : "memory");
  return frames;
}

}  // namespace digits

namespace lockstep::sim {
namespace {

Place resolved(const Frames& frames) {
  PlaceResolver resolver(std::filesystem::path(__FILE__).parent_path());
  const auto place = resolver.resolve(ModuleTable::parse(own_module_table()), frames);
  EXPECT_TRUE(place.has_value());
  return place.value_or(Place{});
}

Frames captured_through(CaptureThrough* library) {
  Frames found;
  library(&capture_frames, kNoGarbage, &found);
  return found;
}

// That it is the line noted last.
void expect_here(const Place& place, const std::string& function) {
  EXPECT_EQ(place.file, "resolver_test.cpp");
  EXPECT_EQ(place.line, digits::line_of_call);
  EXPECT_EQ(place.function, function);
}

TEST(PlaceResolver, NamesLineAndFunction) {
  const Place place = resolved(digits::plain());
  expect_here(place, "digits::plain");
  EXPECT_EQ(to_text(place), "resolver_test.cpp:" + std::to_string(digits::line_of_call) + " (digits::plain)");
  EXPECT_GT(place.offset, 0U);
}

// -g1 keeps the bare name of what was inlined.
TEST(PlaceResolver, SeesInlinedFunctions) {
  const Place place = resolved(digits::with_inlined());
  EXPECT_EQ(place.line, digits::line_of_inner);
  EXPECT_TRUE(place.function == "innermost" || place.function == "digits::innermost") << place.function;
}

TEST(PlaceResolver, PassesOverTheStandardLibrary) {
  expect_here(resolved(digits::through_function()), "lambda in digits::through_function");
}

TEST(PlaceResolver, PassesOverOurOwnHeaders) {
  expect_here(resolved(digits::through_our_header()), "digits::through_our_header");
  expect_here(resolved(digits::through_our_inlined_header()), "digits::through_our_inlined_header");
}

TEST(PlaceResolver, ShowsOtherFoldersByNameAndParent) {
  PlaceResolver resolver("/somewhere/else");
  const auto place = resolver.resolve(ModuleTable::parse(own_module_table()), digits::plain());
  EXPECT_EQ(place->file, "place/resolver_test.cpp");
}

TEST(PlaceResolver, GivesModuleAndOffsetWithoutLineTables) {
  const Place place = resolved(captured_through(&capture_through_bare));
  EXPECT_EQ(place.file, "");
  EXPECT_EQ(place.module, "libplace_bare.so");
  EXPECT_EQ(place.function, "capture_through_bare");
  const std::string text = to_text(place);
  EXPECT_EQ(text.rfind("libplace_bare.so+0x", 0), 0U) << text;
  EXPECT_NE(text.find("build with -g1 for file and line"), std::string::npos) << text;
  EXPECT_EQ(to_short_text(place).find("-g1"), std::string::npos);
}

TEST(PlaceResolver, ToleratesAFileThatIsGoneOrReplaced) {
  auto table = ModuleTable::parse(own_module_table());
  const auto found = table.find(reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "capture_through_bare")));
  ASSERT_TRUE(found.has_value());
  const auto copy = std::filesystem::temp_directory_path() / "libplace_replaced.so";
  std::filesystem::copy_file(found->module->path, copy, std::filesystem::copy_options::overwrite_existing);
  void* library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto late = reinterpret_cast<CaptureThrough*>(dlsym(library, "capture_through_bare"));
  refresh_modules();
  const Frames frames = captured_through(late);
  const std::string before = own_module_table();
  std::filesystem::remove(copy);

  PlaceResolver resolver;
  auto place = resolver.resolve(ModuleTable::parse(before), frames);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->module, "libplace_replaced.so");
  EXPECT_NE(to_text(*place).find("replaced while the program ran"), std::string::npos) << to_text(*place);

  std::ofstream(copy) << "not what was loaded";
  for (const std::string& text : {before, own_module_table()}) {
    place = resolver.resolve(ModuleTable::parse(text), frames);
    ASSERT_TRUE(place.has_value());
    EXPECT_NE(to_text(*place).find("replaced"), std::string::npos) << to_text(*place);
  }
  std::filesystem::remove(copy);
  dlclose(library);
}

TEST(PlaceResolver, FindsNothingInNothing) {
  PlaceResolver resolver;
  EXPECT_FALSE(resolver.resolve(ModuleTable(), digits::plain()).has_value());
  EXPECT_FALSE(resolver.resolve(ModuleTable::parse(own_module_table()), Frames()).has_value());
}

TEST(PlaceResolver, KnowsWhoseAFileIs) {
  for (const char* file : {"/src/reference/lockstep/optim/clip.cpp", "/src/sim/lockstep/sim/check/board.h",
                           "/usr/local/include/lockstep/accelerator/accelerator.h", "/wheel/torch/include/torch/nn.h",
                           "/pytorch/aten/src/ATen/Context.h", "/pytorch/c10/core/Device.h",
                           "/opt/gcc/include/c++/12/functional", "/usr/include/fmt/core.h"}) {
    EXPECT_TRUE(is_library_source(file)) << file;
  }
  for (const char* file : {"/home/me/train.cpp", "/src/sim/lockstep/sim/gallery/two_orders.cpp",
                           "/src/sim/lockstep/sim/check/judge_test.cpp", "/src/examples/01_train_digits.cpp"}) {
    EXPECT_FALSE(is_library_source(file)) << file;
  }
}

}  // namespace
}  // namespace lockstep::sim
