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
  EXPECT_EQ(known_launcher({"python", "-W", "ignore", "-um", "torch.distributed.run", "train.py"}),
            "python -m torch.distributed.run");
}

TEST(KnownLauncher, IsNoOtherProgram) {
  EXPECT_EQ(known_launcher({}), std::nullopt);
  EXPECT_EQ(known_launcher({"./train", "torchrun"}), std::nullopt);
  EXPECT_EQ(known_launcher({"python3", "train.py", "-m", "torch.distributed.run"}), std::nullopt);
  EXPECT_EQ(known_launcher({"python3", "-m", "train", "torchrun"}), std::nullopt);
  EXPECT_EQ(known_launcher({"python3"}), std::nullopt);
}

TEST(LooksLikePython, ByInterpreterScriptOrLauncher) {
  EXPECT_TRUE(looks_like_python({"python3", "-c", "pass"}));
  EXPECT_TRUE(looks_like_python({"./train.py"}));
  EXPECT_TRUE(looks_like_python({"/opt/bin/torchrun", "-m", "train"}));
  EXPECT_TRUE(looks_like_python({"mpirun", "-n", "2", "/usr/bin/python3.11", "-m", "train"}));
  EXPECT_FALSE(looks_like_python({"./train", "--config", "python.json"}));
  EXPECT_FALSE(looks_like_python({}));
}

TEST(UnderPdb, StandsBetweenTheInterpretersOptionsAndWhatIsRun) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(under_pdb({"python", "train.py", "-m", "x"}), Words({"python", "-m", "pdb", "train.py", "-m", "x"}));
  EXPECT_EQ(under_pdb({"/usr/bin/python3.11", "-u", "-X", "dev", "-Wignore", "train.py"}),
            Words({"/usr/bin/python3.11", "-u", "-X", "dev", "-Wignore", "-m", "pdb", "train.py"}));
  EXPECT_EQ(under_pdb({"pypy3", "-m", "train", "--lr", "1"}),
            Words({"pypy3", "-m", "pdb", "-m", "train", "--lr", "1"}));
  EXPECT_EQ(under_pdb({"python", "-um", "train"}), Words({"python", "-u", "-m", "pdb", "-m", "train"}));
  EXPECT_EQ(under_pdb({"python", "-mtrain"}), Words({"python", "-m", "pdb", "-m", "train"}));
}

TEST(UnderPdb, RefusesWhatPdbCannotRun) {
  for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{
           {}, {"./train"}, {"python-config"}, {"python3"}, {"python3", "-"}, {"python3", "-c", "pass"}}) {
    EXPECT_THROW(under_pdb(argv), InvalidArgument);
  }
}

}  // namespace
}  // namespace lockstep::sim
