// The distribution's Gloo headers are older than the Gloo inside LibTorch. If this library exported a class of Gloo
// that it compiled from those headers, LibTorch would bind to it.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "lockstep/comm/backends.h"
#include "lockstep/comm/comm_test_support.h"

namespace lockstep::comm {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  while (const auto count = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), count);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

TEST(Exports, HoldNothingOfGloo) {
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&backend_names), &info), 0);
  const auto symbols = output_of(std::string("nm -DC --defined-only ") + info.dli_fname);
  EXPECT_CONTAINS(symbols, "lockstep::comm::ProcessGroup::create");
  for (const char* hidden : {"gloo::", "GlooStore", "ProcessGroupGloo"}) {
    const auto at = symbols.find(hidden);
    EXPECT_EQ(at, std::string::npos) << symbols.substr(symbols.rfind('\n', at) + 1, 200);
  }
}

}  // namespace
}  // namespace lockstep::comm
