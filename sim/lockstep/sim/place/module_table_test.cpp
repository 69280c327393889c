#include "lockstep/sim/place/module_table.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace lockstep::sim {
namespace {

TEST(PlaceModuleTable, FindsOwnCode) {
  const auto table = ModuleTable::parse(own_module_table());
  const auto found = table.find(reinterpret_cast<std::uintptr_t>(&own_module_table));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->module->path, std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_EQ(found->module->stamp, stamp_of(found->module->path));
  EXPECT_GT(found->file_offset, 0U);
}

TEST(PlaceModuleTable, HoldsCodeAlone) {
  const int on_the_stack = 0;
  const auto table = ModuleTable::parse(own_module_table());
  EXPECT_FALSE(table.find(reinterpret_cast<std::uintptr_t>(&on_the_stack)).has_value());
  for (const MappedModule& module : table.modules()) EXPECT_EQ(module.path.front(), '/') << module.path;
}

TEST(PlaceModuleTable, GivesFileOffsets) {
  const auto table = ModuleTable::parse("2000 3000 500 10 20 /opt/my train\n1000 1800 0 10 20 /opt/libx.so\n");
  const auto found = table.find(0x2010);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->module->path, "/opt/my train");
  EXPECT_EQ(found->module->stamp, (FileStamp{.size = 0x10, .modified_ns = 0x20}));
  EXPECT_EQ(found->file_offset, 0x510U);
  EXPECT_EQ(table.find(0x1000)->module->path, "/opt/libx.so");
  for (const std::uintptr_t outside : {0xfffU, 0x1800U, 0x3000U}) EXPECT_FALSE(table.find(outside).has_value());
}

TEST(PlaceModuleTable, PassesOverWhatItCannotRead) {
  const auto table = ModuleTable::parse(
      "nonsense\n\n1000 1800 0 10 20\n1000 18x0 0 10 20 /a\n1000 1800 0 10 20 /b\n"
      "2000 2800 0 10 20 /opt/libcut-sho");
  ASSERT_EQ(table.modules().size(), 1U);
  EXPECT_EQ(table.modules().front().path, "/b");
  EXPECT_FALSE(ModuleTable::parse("").find(1).has_value());
}

}  // namespace
}  // namespace lockstep::sim
