#include "lockstep/sim/gallery/gallery_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lockstep/base/error.h"

namespace lockstep::sim::gallery {
namespace {

const Listing kFault{.name = "order_x", .kind = "order", .num_ranks = 3, .file = "/src/gallery/order.cpp"};
const Listing kLegal{.name = "legal_x", .kind = "legal", .num_ranks = 2, .file = "/src/x.cpp", .is_legal = true};
const Marker kMarker{.rank = 1, .line = 20, .verdict = "mismatch"};

std::string document(const std::string& verdict, const std::string& first, int line) {
  return R"({"v": 1, "verdict": ")" + verdict +
         R"(", "cause": "c", "ranks": [{"rank": 1, "state": "blocked", "place": )" +
         R"({"file": "gallery/order.cpp", "line": )" + std::to_string(line) + R"(, "function": "f"}}])" + first +
         R"(, "since_stall_s": 0.25})";
}

TEST(GalleryRun, TheRightVerdictRankAndLineAreWell) {
  const auto judgement = judge_verdict(kFault, kMarker, document("mismatch", R"(, "first": 1)", 20));
  EXPECT_TRUE(judgement.is_well());
  EXPECT_EQ(judgement.seconds, 0.25);
}

TEST(GalleryRun, EachPartIsJudgedByItself) {
  EXPECT_FALSE(judge_verdict(kFault, kMarker, document("deadlock", R"(, "first": 1)", 20)).is_found);
  EXPECT_FALSE(judge_verdict(kFault, kMarker, document("ok", "", 20)).is_found);
  EXPECT_FALSE(judge_verdict(kFault, kMarker, document("mismatch", R"(, "first": 2)", 20)).is_rank_right);
  EXPECT_FALSE(judge_verdict(kFault, kMarker, document("mismatch", "", 20)).is_rank_right);
  EXPECT_FALSE(judge_verdict(kFault, kMarker, document("mismatch", R"(, "first": 1)", 21)).is_line_right);
}

TEST(GalleryRun, WhereNothingTellsTheRanksApartOneOfThemIsEnough) {
  auto marker = kMarker;
  marker.is_symmetric = true;
  EXPECT_TRUE(judge_verdict(kFault, marker, document("mismatch", "", 20)).is_well());
  marker.rank = 0;  // not among those named
  EXPECT_FALSE(judge_verdict(kFault, marker, document("mismatch", "", 20)).is_rank_right);
}

TEST(GalleryRun, ALegalProgramHasNoVerdict) {
  EXPECT_TRUE(judge_verdict(kLegal, {}, R"({"v": 1, "verdict": "ok", "cause": "", "ranks": []})").is_well());
  EXPECT_FALSE(judge_verdict(kLegal, {}, document("deadlock", "", 20)).is_well());
}

TEST(GalleryRun, EachScriptIsAListingWithMarkerOrWithout) {
  const auto scripts = list_programs({.scripts = python_scripts()});
  std::set<std::string> names;
  std::set<std::string> kinds;
  for (const auto& script : scripts) {
    EXPECT_TRUE(names.insert(script.name).second) << script.name << " is there twice";
    EXPECT_EQ(script.is_legal, script.file.parent_path().filename() == "legal") << script.file;
    EXPECT_EQ(read_markers(script.file).count(script.name), script.is_legal ? 0U : 1U) << script.file;
    if (!script.is_legal) kinds.insert(script.kind);
  }
  EXPECT_GE(std::ranges::count(scripts, false, &Listing::is_legal), 30);
  EXPECT_GE(std::ranges::count(scripts, true, &Listing::is_legal), 8);
  EXPECT_GE(kinds.size(), 14U);
}

TEST(GalleryRun, ScriptsAreChosenByNameOrKind) {
  const auto chosen =
      list_programs({.scripts = python_scripts(), .only = {"splits", "dtype"}, .exclude = {"dtype_half_on_one_rank"}});
  ASSERT_FALSE(chosen.empty());
  for (const auto& script : chosen) {
    EXPECT_TRUE(script.kind == "splits" || script.kind == "dtype") << script.kind;
    EXPECT_NE(script.name, "dtype_half_on_one_rank");
  }
  EXPECT_THROW(list_programs({.scripts = python_scripts(), .only = {"no_such_kind"}}), InvalidArgument);
  EXPECT_THROW(list_programs({.scripts = "/no/such/folder"}), FileError);
}

TEST(GalleryRun, APythonThatLacksTheImportsIsNamed) {
  EXPECT_NO_THROW(require_imports("/bin/true"));
  try {
    require_imports("/bin/false");
    FAIL() << "no error";
  } catch (const Missing& error) {
    EXPECT_NE(std::string(error.what()).find("got /bin/false"), std::string::npos) << error.what();
  }
}

TEST(GalleryRun, TotalsCountFaultsAndFalseVerdictsApart) {
  auto found = judge_verdict(kFault, kMarker, document("mismatch", R"(, "first": 1)", 20));
  const auto quiet = judge_verdict(kLegal, {}, R"({"v": 1, "verdict": "ok", "cause": "", "ranks": []})");
  EXPECT_TRUE(totals_of({found, quiet}).is_well());
  const auto accused = judge_verdict(kLegal, {}, document("deadlock", "", 20));
  EXPECT_EQ(totals_of({found, accused}).num_false, 1);
  EXPECT_FALSE(totals_of({found, accused}).is_well());
  found.seconds = 3.5;
  EXPECT_FALSE(totals_of({found}).is_well());
}

}  // namespace
}  // namespace lockstep::sim::gallery
