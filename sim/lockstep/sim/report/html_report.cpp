#include "lockstep/sim/report/html_report.h"

#include <string_view>
#include <vector>

#include "lockstep/sim/report/comparison.h"
#include "lockstep/sim/report/html_writer.h"
#include "lockstep/sim/report/wait_drawing.h"
#include "lockstep/sim/report/waiting.h"
#include "lockstep/sim/report/wording.h"

namespace lockstep::sim::report {

namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2024; --faint: #667; --line: #d5d8de; --good: #1a7f37;
  --bad: #c62828; --warn: #9a6700; --mark: #fdecea; }
@media (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #e4e6ea; --faint: #99a; --line: #3a3f47;
  --good: #57c46f; --bad: #ff7b72; --warn: #e3b341; --mark: #43201f; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.35rem; margin: .2rem 0 .6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 1.8rem 0 .5rem; }
.outcome { font-weight: 700; color: var(--bad); margin: 0; }
.outcome.ok { color: var(--good); }
.outcome.straggler, .outcome.unchecked, .outcome.interrupted { color: var(--warn); }
.facts, .lacking { color: var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 600; }
header code { display: block; overflow-wrap: anywhere; }
td, pre, code, .chain { font-family: ui-monospace, monospace; font-size: .875rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; }
.blocked { --state: var(--warn); } .failed { --state: var(--bad); }
td.state { color: var(--state, inherit); }
.differs { background: var(--mark); color: var(--bad); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .4rem 0 .8rem 1.2rem; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; }
.node circle { fill: var(--paper); stroke: var(--state, var(--faint)); stroke-width: 2; }
.node text { fill: var(--ink); font-size: 13px; text-anchor: middle; dominant-baseline: central; }
.node.cycle circle { stroke: var(--bad); }
.node.first circle { fill: var(--mark); stroke: var(--bad); stroke-width: 4; }
.way { fill: none; stroke: var(--faint); stroke-width: 1.5; }
.way.cycle { stroke: var(--bad); stroke-width: 2.5; }
marker.arrow path { fill: var(--faint); } marker.cycle path { fill: var(--bad); }
)";

class HtmlReport {
 public:
  explicit HtmlReport(const Verdict& verdict) : verdict_(verdict) {}

  std::string write() {
    to_.raw("<!DOCTYPE html>\n");
    {
      const auto html = to_.element("html", {{"lang", "en"}});
      add_head();
      add_body();
    }
    return to_.take();
  }

 private:
  void add_head() {
    const auto head = to_.element("head");
    to_.empty("meta", {{"charset", "utf-8"}});
    to_.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
    to_.leaf("title", std::string(to_word(verdict_.outcome)) + " - Lockstep");
    const auto style = to_.element("style");
    to_.raw(kStyle);
  }

  void add_body() {
    const auto body = to_.element("body");
    {
      const auto header = to_.element("header");
      const std::string outcome(to_word(verdict_.outcome));
      to_.leaf("p", outcome, {{"class", "outcome " + outcome}});
      to_.leaf("h1", one_line(verdict_.cause));
      if (const auto command = command_text(verdict_); !command.empty()) to_.leaf("code", command);
      add_facts();
    }
    const auto main = to_.element("main");
    add_ranks();
    if (verdict_.outcome == Outcome::mismatch) add_comparison();
    add_waiting();
    add_details();
    add_list("Left behind", verdict_.left);
    add_list("Notes", verdict_.notes);
    add_way_on();
  }

  void add_facts() {
    std::string sentences;
    for (const std::string& fact : facts(verdict_)) sentences += (sentences.empty() ? "" : " ") + fact;
    if (!sentences.empty()) to_.leaf("p", sentences, {{"class", "facts"}});
  }

  void add_heads(const std::vector<std::string>& names) {
    const auto head = to_.element("thead");
    const auto row = to_.element("tr");
    for (const std::string& name : names) to_.leaf("th", name, {{"scope", "col"}});
  }

  void add_ranks() {
    if (verdict_.ranks.empty()) return;
    const auto section = to_.element("section");
    to_.leaf("h2", "Where the ranks stand");
    const auto wide = to_.element("div", {{"class", "wide"}});
    const auto table = to_.element("table");
    add_heads({"", "state", "in", "step", "at", "of"});
    const auto body = to_.element("tbody");
    for (const RankGroup& group : group_alike(verdict_)) {
      const RankStanding& standing = *group.standing;
      const std::string state(to_word(standing.state));
      const auto row = to_.element("tr", {{"class", state}});
      to_.leaf("td", list_ranks(group.ranks));
      to_.leaf("td", state, {{"class", "state"}});
      to_.leaf("td", standing_text(standing));
      to_.leaf("td", step_text(standing));
      to_.leaf("td", place_text(standing));
      to_.leaf("td", label_text(standing));
    }
  }

  void add_comparison() {
    const Comparison comparison = compare_calls(verdict_);
    if (comparison.rows.size() < 2) return;
    const auto section = to_.element("section");
    to_.leaf("h2", "What they call");
    {
      const auto wide = to_.element("div", {{"class", "wide"}});
      const auto table = to_.element("table");
      std::vector<std::string> heads = {""};
      for (const auto& field : comparison.fields) heads.push_back(field.name);
      heads.emplace_back("at");
      add_heads(heads);
      const auto body = to_.element("tbody");
      for (const auto& row : comparison.rows) add(row, comparison.fields);
    }
    if (const auto sentence = comparison.sentence(); !sentence.empty()) to_.leaf("p", sentence);
  }

  void add(const Comparison::Row& row, const std::vector<Comparison::Field>& fields) {
    const auto element = to_.element("tr");
    to_.leaf("td", list_ranks(row.ranks));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      to_.leaf("td", row.cells[i], {{"class", fields[i].differs ? "differs" : "same"}});
    }
    to_.leaf("td", row.place);
  }

  void add_waiting() {
    const Waiting waiting(verdict_);
    if (waiting.empty()) return;
    const auto section = to_.element("section");
    to_.leaf("h2", "Who waits for whom");
    const bool is_drawn = draw_waiting(verdict_, to_);
    if (!is_drawn) to_.leaf("p", "There are too many ranks for a drawing.", {{"class", "lacking"}});
    for (const std::string& chain : waiting.chains()) to_.leaf("p", chain, {{"class", "chain"}});
  }

  void add_details() {
    if (verdict_.ranks.empty()) return;
    const auto section = to_.element("section");
    to_.leaf("h2", "Rank by rank");
    for (const RankStanding& standing : verdict_.ranks) add_details(standing);
  }

  // Open from the start for the rank where it began, and for those that failed.
  void add_details(const RankStanding& standing) {
    const bool is_open = verdict_.first == standing.rank || standing.state == RankState::failed;
    const auto details =
        to_.element("details", is_open ? HtmlWriter::Attributes{{"open", "open"}} : HtmlWriter::Attributes{});
    to_.leaf("summary", list_ranks({standing.rank}) + ", " + std::string(to_word(standing.state)));
    {
      const auto list = to_.element("dl");
      add_item("call", call_text(standing));
      add_item("tensors", tensors_text(standing));
      add_item("reduction", standing.reduce_op);
      add_item("step", step_text(standing));
      add_item("phase", standing.phase);
      add_item("place", standing.place ? to_text(*standing.place) : "");
      add_item("waits at", standing.waits_at ? to_text(*standing.waits_at) : "");
      if (!standing.waits_for.empty()) add_item("waits for", list_ranks(standing.waits_for));
      std::string names;
      for (const std::string& name : standing.label) names += (names.empty() ? "" : ", ") + name;
      add_item("of", names);
      add_item("failure", failure_text(standing));
    }
    if (standing.errors.empty()) return;
    std::string errors;
    for (const std::string& error : standing.errors) errors += error + "\n";
    to_.leaf("pre", errors);
  }

  void add_item(const std::string& name, const std::string& text) {
    if (text.empty()) return;
    to_.leaf("dt", name);
    to_.leaf("dd", text);
  }

  void add_list(const std::string& heading, const std::vector<std::string>& items) {
    if (items.empty()) return;
    const auto section = to_.element("section");
    to_.leaf("h2", heading);
    const auto list = to_.element("ul");
    for (const std::string& item : items) to_.leaf("li", item);
  }

  void add_way_on() {
    const std::string line_tables = line_tables_text(verdict_);
    if (verdict_.hint.empty() && line_tables.empty() && verdict_.replay.empty()) return;
    const auto section = to_.element("section");
    to_.leaf("h2", "How to go on");
    if (!verdict_.hint.empty()) to_.leaf("p", verdict_.hint);
    if (!line_tables.empty()) to_.leaf("p", line_tables);
    if (verdict_.replay.empty()) return;
    to_.leaf("p", "To run it again:");
    to_.leaf("pre", verdict_.replay);
  }

  const Verdict& verdict_;
  HtmlWriter to_;
};

}  // namespace

std::string to_html(const Verdict& verdict) { return HtmlReport(verdict).write(); }

}  // namespace lockstep::sim::report
