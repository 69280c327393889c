#include "lockstep/sim/report/html_report.h"

#include <gtest/gtest.h>

#include <regex>
#include <vector>

#include "lockstep/sim/report/verdicts_test_support.h"

namespace lockstep::sim::report {
namespace {

// What is wrong with the tags and entities of a page; empty if it is well-formed.
std::string fault_in(const std::string& html) {
  static const std::regex tag(R"re(^<(/?)([A-Za-z][A-Za-z0-9]*)((?: [A-Za-z-]+="[^"<>]*")*)(/?)>)re");
  static const std::regex entity("^&(amp|lt|gt|quot|#39);");
  std::vector<std::string> open;
  std::size_t at = std::string("<!DOCTYPE html>").size();
  while (at < html.size()) {
    std::smatch found;
    const auto here = html.begin() + static_cast<std::ptrdiff_t>(at);
    if (html[at] == '&') {
      if (!std::regex_search(here, html.end(), found, entity)) return "bare & at " + html.substr(at, 40);
    } else if (html[at] == '<') {
      if (!std::regex_search(here, html.end(), found, tag)) return "no tag at " + html.substr(at, 40);
      if (found[1] == "/") {
        if (open.empty() || open.back() != found[2]) return "not open: " + found.str();
        open.pop_back();
      } else if (found[4] != "/") {
        open.push_back(found[2]);
      }
    }
    at += found.empty() ? 1 : static_cast<std::size_t>(found.length());
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

void expect_holds(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in\n" << text;
}

TEST(HtmlReport, IsWellFormedAndNeedsNothingElse) {
  for (const auto& verdict : {deadlock_verdict(), mismatch_verdict(), rank_failed_verdict(), straggler_verdict(),
                              unchecked_verdict(), interrupted_verdict(), Verdict()}) {
    const auto html = to_html(verdict);
    EXPECT_EQ(html.rfind("<!DOCTYPE html>\n<html lang=\"en\">", 0), 0U);
    EXPECT_EQ(fault_in(html), "");
    for (const char* other : {"<script", "http", "src=", "href=", "@import", "url(h"}) {
      EXPECT_EQ(html.find(other), std::string::npos) << other;
    }
    expect_holds(html, "prefers-color-scheme: dark");
    expect_holds(html, "<p class=\"outcome " + std::string(to_word(verdict.outcome)) + "\">");
    expect_holds(html, "<h1>" + verdict.cause + "</h1>");
  }
}

TEST(HtmlReport, SaysWhatTheTextSays) {
  const auto html = to_html(deadlock_verdict());
  for (const char* part :
       {"<td>rank 0</td>", "<td>ranks 1, 2</td>", "<td>barrier #4 of world</td>", "<td>train.cpp:41 (step)</td>",
        "rank 0 (allreduce #4 of world) -&gt; rank 1", "Found 0.21 s after it began.", "<li>different call sites",
        "Compare the ways of the ranks", "<pre>lockstep sim replay lockstep-runs/1</pre>"}) {
    expect_holds(html, part);
  }
}

TEST(HtmlReport, MarksWhatDiffers) {
  const auto html = to_html(mismatch_verdict());
  expect_holds(html, "<td class=\"differs\">sum</td>");
  expect_holds(html, "<td class=\"differs\">broadcast #4 of world</td>");
  expect_holds(html, "<td class=\"same\">float32 [2, 3]</td>");
}

TEST(HtmlReport, MarksOnlyTheTensorsOfTheTwoEndsOfAMessage) {
  auto verdict = mismatch_verdict();
  verdict.ranks.resize(2);
  verdict.ranks[0].op = "send";
  verdict.ranks[0].peer = 1;
  verdict.ranks[1].op = "recv";
  verdict.ranks[1].shapes = {{3}};
  const auto html = to_html(verdict);
  expect_holds(html, "<td class=\"differs\">float32 [3]</td>");
  expect_holds(html, "<td class=\"same\">recv #4 of world</td>");
  expect_holds(html, "<td class=\"same\">from rank 0</td>");
  expect_holds(html, "<p>They differ in tensors.</p>");
}

TEST(HtmlReport, TellsTheNotesOfARunThatEndedWell) {
  auto verdict = verdict_of(Outcome::ok, "3 ranks ended well");
  verdict.notes = {"call sites differ: allreduce #3"};
  const auto html = to_html(verdict);
  expect_holds(html, "<h2>Notes</h2>");
  expect_holds(html, "<li>call sites differ: allreduce #3</li>");
}

TEST(HtmlReport, ShowsTheCommandLineUnderTheHeading) {
  auto verdict = deadlock_verdict();
  verdict.command = {"build/bin/lockstep", "sim", "-n", "3", "--", "./train", "a b"};
  expect_holds(to_html(verdict), "</h1>\n<code>lockstep sim -n 3 -- ./train &#39;a b&#39;</code>\n");
  EXPECT_EQ(count(to_html(deadlock_verdict()), "<code>"), 0U);
}

TEST(HtmlReport, DrawsTheCycleApart) {
  const auto html = to_html(deadlock_verdict());
  EXPECT_EQ(count(html, "<circle"), 3U);
  EXPECT_EQ(count(html, "class=\"way cycle\""), 2U);
  EXPECT_EQ(count(html, "class=\"way arrow\""), 2U);
  expect_holds(html, "<g class=\"node blocked cycle first\">");
  expect_holds(html, "<title>rank 2: blocked, barrier #4 of world, at train.cpp:57 (step)</title>");
  EXPECT_EQ(count(to_html(unchecked_verdict()), "<svg"), 0U);
}

TEST(HtmlReport, DrawsManyRanksAsGroups) {
  auto verdict = verdict_of(Outcome::straggler, "rank 0 is late");
  RankStanding late;
  verdict.ranks = {late};
  for (int rank = 1; rank < 200; ++rank) {
    verdict.ranks.push_back(blocked(rank, "allreduce", 41));
    verdict.edges.push_back({.from = rank, .to = 0});
  }
  const auto html = to_html(verdict);
  EXPECT_EQ(count(html, "<circle"), 2U);
  expect_holds(html, ">1-199</text>");
}

TEST(HtmlReport, DrawsNothingWhereThereIsTooMuchToSee) {
  auto verdict = verdict_of(Outcome::deadlock, "a ring");
  for (int rank = 0; rank < 100; ++rank) {
    verdict.ranks.push_back(blocked(rank, "recv", 41));
    verdict.edges.push_back({.from = rank, .to = (rank + 1) % 100});
  }
  const auto html = to_html(verdict);
  EXPECT_EQ(count(html, "<svg"), 0U);
  expect_holds(html, "too many ranks for a drawing");
  expect_holds(html, "rank 98 -&gt; rank 99 -&gt; rank 0</p>");
}

TEST(HtmlReport, EscapesWhatComesFromTheProgram) {
  const std::string attack = "</style></title>\"'<script>alert(1)</script>&amp;\033";
  auto verdict = mismatch_verdict();
  verdict.cause = verdict.hint = verdict.replay = attack;
  verdict.notes = verdict.left = verdict.command = {attack};
  verdict.edges = {{0, 1}};
  for (auto& standing : verdict.ranks) {
    standing.op += attack;
    standing.group = standing.dtype = standing.reduce_op = standing.phase = standing.key = attack;
    standing.kind = standing.message = standing.report = attack;
    standing.label = standing.errors = {attack};
    standing.place =
        Place{.file = attack, .line = 1, .function = attack, .module = attack, .offset = 1, .remark = attack};
    standing.waits_at = standing.failed_at = standing.place;
  }
  const auto html = to_html(verdict);
  EXPECT_EQ(fault_in(html), "");
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find('\033'), std::string::npos);
  EXPECT_EQ(count(html, "</style>"), 1U);
  expect_holds(html, "&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;");
}

}  // namespace
}  // namespace lockstep::sim::report
