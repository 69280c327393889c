#include "lockstep/sim/world/run_folder.h"

#include <gtest/gtest.h>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/error.h"
#include "lockstep/sim/world/test_support/fake_job_view.h"
#include "lockstep/sim/world/test_support/launched.h"

namespace lockstep::sim::test {
namespace {

TEST(RunFolder, HoldsTheVerdictAsDocumentAndPageAndTheLogsThatAreNotThereYet) {
  const Folder folder;
  write_file(folder.file("rank1.log"), "streamed\n");
  write_run_folder(folder.path(), {.verdict = R"({"v": 1, "verdict": "deadlock", "cause": "planted", "ranks": []})",
                                   .ranks = {{.rank = 0, .log = "kept\n"}, {.rank = 1}}});
  EXPECT_EQ(VerdictJson::parse(text_of(folder.file("verdict.json")))["cause"], "planted");
  EXPECT_NE(text_of(folder.file("report.html")).find("planted"), std::string::npos);
  EXPECT_EQ(text_of(folder.file("rank0.log")), "kept\n");
  EXPECT_EQ(text_of(folder.file("rank1.log")), "streamed\n");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_NE(entry.path().extension(), ".part");
  }
}

TEST(RunFolder, IsMadeWithTheFoldersAboveIt) {
  const Folder folder;
  make_folder(folder.path() / "a" / "b");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "a" / "b"));
}

TEST(RunFolder, HoldsOneRun) {
  const Folder folder;
  write_file(folder.file("notes.txt"), "");
  write_file(folder.file("rank.log"), "");
  make_run_folder(folder.path());
  for (const auto& name : {"verdict.json", "report.html", "rank12.log", "rank0.log.part", "command.log"}) {
    const Folder used;
    write_file(used.file(name), "");
    try {
      make_run_folder(used.path());
      ADD_FAILURE() << name;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("where ") + name + " is. Name another"), std::string::npos)
          << error.what();
    }
  }
}

TEST(RunFolder, SaysWhatItCannotWrite) {
  const Folder folder;
  try {
    write_file(folder.path() / "missing" / "file", "content");
    ADD_FAILURE() << "it wrote";
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find("missing/file.part: expected to write it, got No such file"),
              std::string::npos)
        << error.what();
  }
  write_file(folder.file("file"), "content");
  EXPECT_THROW(make_folder(folder.path() / "file" / "below"), FileError);
}

}  // namespace
}  // namespace lockstep::sim::test
