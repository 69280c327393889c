#include "lockstep/sim/world/rank_environment.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/sim/world/test_support/launched.h"

namespace lockstep::sim::test {
namespace {

TEST(PythonFolder, StandsBesideTheProgramsAndHoldsThePackage) {
  const Folder folder;
  const auto program = folder.path() / "bin" / "lockstep";
  EXPECT_EQ(python_folder_of(program), std::nullopt);
  std::filesystem::create_directories(folder.path() / "python" / "lockstep");
  EXPECT_EQ(python_folder_of(program), std::nullopt) << "no package";
  std::ofstream(folder.path() / "python" / "lockstep" / "__init__.py") << "";
  EXPECT_EQ(python_folder_of(program), folder.path() / "python");
}

TEST(PythonFolder, StandsUnderShareInAPrefix) {
  const Folder prefix;
  const auto python = prefix.path() / "share" / "lockstep" / "python";
  std::filesystem::create_directories(python / "lockstep");
  std::ofstream(python / "lockstep" / "__init__.py") << "";
  EXPECT_EQ(python_folder_of(prefix.path() / "bin" / "lockstep"), python);
}

TEST(PythonFolder, GoesBeforeWhatTheUserHas) {
  Variables variables = {{"PYTHONPATH", "/of/the/user"}};
  prepend_to_python_path(variables, "/package");
  EXPECT_EQ(variables["PYTHONPATH"], "/package:/of/the/user");
  variables = {};
  prepend_to_python_path(variables, "/package");
  EXPECT_EQ(variables["PYTHONPATH"], "/package") << "an empty part would be the current folder";
}

}  // namespace
}  // namespace lockstep::sim::test
