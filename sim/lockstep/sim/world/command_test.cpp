#include "lockstep/sim/world/command.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sim {
namespace {

TEST(FindProgram, LooksAlongThePathForWhatCanBeRun) {
  EXPECT_EQ(find_program("sh", "/no/such/folder:/bin"), "/bin/sh");
  EXPECT_EQ(find_program("/bin/sh", ""), "/bin/sh");
  EXPECT_THROW(find_program("passwd", "/etc"), InvalidArgument);  // there, but no program
}

TEST(FindProgram, SaysWhatItFoundInstead) {
  const auto text = [](const std::string& name) -> std::string {
    try {
      return find_program(name, "/bin");
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  };
  EXPECT_EQ(text("/no/such"), "sim: expected a program that can be run, got /no/such (No such file or directory)");
  EXPECT_EQ(text("/etc"), "sim: expected a program that can be run, got /etc (a folder)");
  EXPECT_EQ(text("/etc/passwd"),
            "sim: expected a program that can be run, got /etc/passwd (a file that is not executable)");
  EXPECT_EQ(text("no-such"), "sim: expected a program along PATH, got 'no-such', which is not there");
}

TEST(KnownLauncher, IsRecognisedHoweverItIsCalled) {
  EXPECT_EQ(known_launcher({"torchrun", "--nproc-per-node", "2", "train.py"}), "torchrun");
  EXPECT_EQ(known_launcher({"/opt/bin/mpirun", "-n", "2", "./train"}), "mpirun");
  EXPECT_EQ(known_launcher({"accelerate", "launch", "train.py"}), "accelerate");
  EXPECT_EQ(known_launcher({"python3", "-m", "torch.distributed.run", "train.py"}), "python -m torch.distributed.run");
  EXPECT_EQ(known_launcher({"python3.11", "-u", "-m", "accelerate.commands.launch", "train.py"}),
            "python -m accelerate.commands.launch");
  EXPECT_EQ(known_launcher({"python", "/opt/venv/bin/torchrun", "train.py"}), "torchrun");
}

TEST(KnownLauncher, IsNoOtherProgram) {
  EXPECT_EQ(known_launcher({}), std::nullopt);
  EXPECT_EQ(known_launcher({"./train", "torchrun"}), std::nullopt);
  EXPECT_EQ(known_launcher({"python3", "train.py", "-m", "torch.distributed.run"}), std::nullopt);
  EXPECT_EQ(known_launcher({"python3", "-m", "train", "torchrun"}), std::nullopt);
  EXPECT_EQ(known_launcher({"python3"}), std::nullopt);
}

}  // namespace
}  // namespace lockstep::sim
