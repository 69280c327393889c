// What ranks write after the verdict is kept from the user, who reads the report instead.
#include <gtest/gtest.h>

#include "lockstep/sim/world/test_support/fake_job_view.h"
#include "lockstep/sim/world/test_support/launched.h"

namespace lockstep::sim::test {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

LaunchOptions holding_back(const Folder& folder, const std::string& script) {
  auto options = shell(folder, 2, script);
  options.holds_back = true;
  options.environment["VERDICT"] = R"({"verdict": "mismatch", "cause": "planted", "ranks": []})";
  return options;
}

// Ranks that say something before and, as soon as it is there, after the verdict of their monitors.
const std::string kRepeat =
    "echo before $RANK; echo $RANK $$ 1 >> $F/joined; until [ $(wc -l < $F/joined) = 2 ]; do sleep 0.01; done; "
    "sleep 0.2; echo \"$VERDICT\" > $F/v$RANK; mv $F/v$RANK $F/verdict; echo after $RANK >&2; exit 1";

TEST(HoldingBack, BeginsWithTheVerdictOnTheBoard) {
  const Folder folder;
  Launched run(folder, holding_back(folder, kRepeat));
  EXPECT_EQ(run.wait(), 11);
  for (const std::string rank : {"0", "1"}) {
    EXPECT_TRUE(has(run.output(), "[rank " + rank + "] before " + rank + "\n")) << run.output();
    EXPECT_FALSE(has(run.errors(), "after")) << run.errors();
    EXPECT_EQ(text_of(folder.file("held" + rank)), "after " + rank + "\n");
  }
}

TEST(HoldingBack, BeginsWhenRanksAreEndedIfTheLauncherReachedTheVerdict) {
  const Folder folder;
  Launched run(folder, holding_back(folder,
                                    "[ $RANK = 0 ] || { echo broken >&2; exit 3; }; "
                                    "trap 'echo after; exit 1' TERM; echo before; while :; do sleep 0.05; done"));
  EXPECT_EQ(run.wait(), 12);
  EXPECT_EQ(run.output(), "[rank 0] before\n");
  EXPECT_TRUE(has(run.errors(), "[rank 1] broken\n")) << "the first cause";
  EXPECT_TRUE(has(text_of(folder.file("held0")), "after\n"));
}

TEST(HoldingBack, IsForThoseWhoAskForIt) {
  const Folder folder;
  auto options = holding_back(folder, kRepeat);
  options.holds_back = false;
  Launched run(folder, options);
  EXPECT_EQ(run.wait(), 11);
  EXPECT_TRUE(has(run.errors(), "[rank 0] after 0\n")) << run.errors();
  EXPECT_EQ(text_of(folder.file("held0")), "");
}

TEST(HoldingBack, TakesNothingFromARunThatGoesWell) {
  const Folder folder;
  Launched run(folder, holding_back(folder, "echo $RANK $$ 1 >> $F/joined; echo last words"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(has(run.output(), "[rank 1] last words\n")) << run.output();
}

}  // namespace
}  // namespace lockstep::sim::test
